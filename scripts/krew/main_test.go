package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const manifest = "../../deploy/krew/netdelta.yaml"

// release is a folder with archives as make dist names them.
func release(t *testing.T, version string) []string {
	t.Helper()
	dir := t.TempDir()
	var all []string
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(dir, "netdelta-"+version+"-linux-"+arch+".tar.gz")
		if err := os.WriteFile(path, []byte(arch), 0o644); err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
	return all
}

// The manifest of the repository becomes one that Krew takes, with both processors and the checksums of their archives.
func TestManifest(t *testing.T) {
	archives := release(t, "v1.2.3")
	var out bytes.Buffer
	if err := run(manifest, "v1.2.3", "https://example.org/v1.2.3", archives, &out); err != nil {
		t.Fatal(err)
	}
	// Read back as any YAML, so that names of fields are as written and not as this program's types have them.
	var read map[string]any
	if err := yaml.Load(out.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	spec, ok := read["spec"].(map[string]any)
	if !ok || read["apiVersion"] != "krew.googlecontainertools.github.com/v1alpha2" || read["kind"] != "Plugin" || spec["version"] != "v1.2.3" {
		t.Fatalf("%s", out.String())
	}
	platforms, ok := spec["platforms"].([]any)
	if !ok || len(platforms) != 2 {
		t.Fatalf("%s", out.String())
	}
	for i, arch := range []string{"amd64", "arm64"} {
		p := platforms[i].(map[string]any)
		folder := "netdelta-v1.2.3-linux-" + arch
		if p["uri"] != "https://example.org/v1.2.3/"+folder+".tar.gz" || p["sha256"] != fmt.Sprintf("%x", sha256.Sum256([]byte(arch))) || p["bin"] != "netdelta" {
			t.Errorf("the platform is %v", p)
		}
		labels := p["selector"].(map[string]any)["matchLabels"].(map[string]any)
		if labels["os"] != "linux" || labels["arch"] != arch {
			t.Errorf("the selector is %v", labels)
		}
		if first := p["files"].([]any)[0].(map[string]any); first["from"] != folder+"/netdelta" || first["to"] != "." {
			t.Errorf("the first file is %v", first)
		}
	}
}

// The file in the repository has all that a release does not add, and nothing that Krew does not know.
func TestRepositoryManifest(t *testing.T) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.Load(text, &p, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	err = check(p)
	if err == nil {
		t.Fatal("it has a version and platforms already")
	}
	if got, want := err.Error(), "the version \"\" is no semantic one\nit has no platform"; got != want {
		t.Errorf("beside version and platforms, %q", got)
	}
}

func TestRefused(t *testing.T) {
	good := func() plugin {
		var out bytes.Buffer
		if err := run(manifest, "v1.2.3", "https://example.org", release(t, "v1.2.3"), &out); err != nil {
			t.Fatal(err)
		}
		var p plugin
		if err := yaml.Load(out.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for what, spoil := range map[string]func(p *plugin){
		"the name":              func(p *plugin) { p.Metadata.Name = "Net Delta" },
		"the version":           func(p *plugin) { p.Spec.Version = "1.2" },
		"the short description": func(p *plugin) { p.Spec.ShortDescription = strings.Repeat("x", longestShort+1) },
		"the address":           func(p *plugin) { p.Spec.Platforms[1].URI = "netdelta.tar.gz" },
		"the checksum":          func(p *plugin) { p.Spec.Platforms[0].SHA256 = "ABC" },
		"the program":           func(p *plugin) { p.Spec.Platforms[0].Bin = "../netdelta" },
		"the selector":          func(p *plugin) { p.Spec.Platforms[0].Selector.MatchLabels = nil },
		"the file":              func(p *plugin) { p.Spec.Platforms[0].Files[0].From = "/netdelta" },
		"no platform":           func(p *plugin) { p.Spec.Platforms = nil },
	} {
		p := good()
		if err := check(p); err != nil {
			t.Fatal(err)
		}
		spoil(&p)
		if err := check(p); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := run(manifest, "v1.2.3", "https://example.org", []string{"other.tar.gz"}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "no archive of a release") {
		t.Errorf("%v", err)
	}
}

func TestSemantic(t *testing.T) {
	for text, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v0.0.0-20301122103040-0123456789ab+dirty": "v0.0.0-20301122103040-0123456789ab+dirty", "0123456789ab": "v0.0.0-0123456789ab",
		"devel": "v0.0.0-devel", "a+b": "v0.0.0-a-b",
	} {
		if got := semantic(text); got != want || !version.MatchString(got) {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}
