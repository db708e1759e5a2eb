package repotest

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestPluginManifest: what Krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest) and its guide ask of a manifest, before
// `make dist` adds the version and the archives.
func TestPluginManifest(t *testing.T) {
	text, err := os.ReadFile(root + "/deploy/krew/netdelta.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			ShortDescription     string `yaml:"shortDescription"`
			Description, Caveats string
		}
	}
	if err := yaml.Load(text, &m, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "netdelta" || m.Spec.Description == "" {
		t.Errorf("%+v", m)
	}
	if short := m.Spec.ShortDescription; short == "" || len(short) > 50 || strings.ContainsAny(short, "\r\n") || strings.HasSuffix(short, ".") {
		t.Errorf("the short description %q: at most 50 characters on one line, without a full stop", short)
	}
}
