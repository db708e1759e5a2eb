package release

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"go.yaml.in/yaml/v4"
	semver "k8s.io/apimachinery/pkg/util/version"

	"netdelta/internal/require"
)

// distVariable names the folder that `make dist` has filled.
const distVariable = "NETDELTA_DIST"

// dist is a release that was made.
type dist struct {
	folder  string
	version string // v0.2.0
}

// made is the release that the tests are given.
func made(t *testing.T) dist {
	t.Helper()
	folder := os.Getenv(distVariable)
	require.Need(t, "a release in "+distVariable+", as make test-dist gives it", folder != "")
	archives, err := filepath.Glob(filepath.Join(folder, "netdelta-*-linux-amd64.tar.gz"))
	require.NoError(t, err)
	if len(archives) != 1 {
		t.Fatalf("%s has %d archives for amd64: make dist makes one", folder, len(archives))
	}
	name := strings.TrimSuffix(filepath.Base(archives[0]), "-linux-amd64.tar.gz")
	return dist{folder, strings.TrimPrefix(name, "netdelta-")}
}

// file is the path of one of its files.
func (d dist) file(suffix string) string {
	return filepath.Join(d.folder, "netdelta-"+d.version+suffix)
}

// own is the path of the file for the processor of this machine.
func (d dist) own(suffix string) string { return d.file("-linux-" + runtime.GOARCH + suffix) }

// sum is the checksum of a file.
func sum(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	require.NoError(t, err)
	return hex.EncodeToString(h.Sum(nil))
}

// read is the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// asRoot runs a command as root of a user namespace, so that files can be given to root.
func asRoot(t *testing.T, command ...string) string {
	t.Helper()
	require.Namespaces(t)
	return in(t, ".", nil, append([]string{"unshare", "--map-root-user"}, command...)...)
}

// within runs a program in a root folder that has nothing else but /proc.
func within(t *testing.T, root string, uid int, command ...string) string {
	t.Helper()
	require.Namespaces(t)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "proc"), 0o755))
	as := fmt.Sprintf("--map-user=%d", uid)
	return in(t, ".", nil, append([]string{"unshare", "--user", as, fmt.Sprintf("--map-group=%d", uid), "--mount", "--pid", "--fork", "--root=" + root, "--mount-proc"}, command...)...)
}

// says checks what an installed program says of itself.
func (d dist) says(t *testing.T, text, agent string) {
	t.Helper()
	if first, _, _ := strings.Cut(text, "\n"); first != "netdelta "+d.version || !strings.Contains(text, "\nagent     "+agent+"\n") {
		t.Errorf("it says\n%swant version %s and the agent %s", text, d.version, agent)
	}
}

// TestInstallArchive unpacks the archive into an empty root.
func TestInstallArchive(t *testing.T) {
	d := made(t)
	root := t.TempDir()
	in(t, ".", nil, "tar", "-xzf", d.own(".tar.gz"), "-C", root, "--strip-components=1", "--no-same-owner")
	d.says(t, within(t, root, 0, "/netdelta", "version"), "/netdelta-agent")
	for _, name := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "sbom.cdx.json", "licenses/go/LICENSE", "man/netdelta.1", "man/netdelta-run.1", "completions/_netdelta", "completions/netdelta.fish",
	} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	in(t, ".", nil, "bash", "-n", filepath.Join(root, "completions/netdelta.bash"))
}

// installed checks what a package has put below a root.
func (d dist) installed(t *testing.T, root, zsh string) {
	t.Helper()
	d.says(t, within(t, root, 0, "/usr/bin/netdelta", "version"), "/usr/bin/netdelta-agent")
	if help := within(t, root, 0, "/usr/bin/kubectl-netdelta", "--help"); !strings.Contains(help, "kubectl netdelta VERB --help") {
		t.Errorf("the plugin of kubectl says\n%s", help)
	}
	page, err := os.Open(filepath.Join(root, "usr/share/man/man1/netdelta-run.1.gz"))
	require.NoError(t, err)
	defer page.Close()
	unpacked, err := gzip.NewReader(page)
	require.NoError(t, err)
	if text, err := io.ReadAll(unpacked); err != nil || !strings.Contains(string(text), "EXIT STATUS") {
		t.Errorf("the manual page of run has %d bytes, error %v", len(text), err)
	}
	for _, name := range []string{
		"usr/share/bash-completion/completions/netdelta", "usr/share/fish/vendor_completions.d/netdelta.fish", zsh, "usr/share/doc/netdelta/CHANGELOG.md",
		"usr/share/doc/netdelta/licenses/go/LICENSE", "usr/share/doc/netdelta/sbom.cdx.json",
	} {
		if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
	}
}

// gone checks that a removed package left nothing below a root.
func gone(t *testing.T, root string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && path == filepath.Join(root, "var") {
			return fs.SkipDir // what the package manager remembers
		}
		if err == nil && strings.Contains(filepath.Base(path), "netdelta") {
			t.Errorf("%s is still there", path)
		}
		return err
	}))
}

// TestInstallDeb installs the package for Debian in an empty root, with nothing that it could depend on, and removes it.
func TestInstallDeb(t *testing.T) {
	d := made(t)
	require.Tool(t, "dpkg")
	root := t.TempDir()
	for _, name := range []string{"info", "parts", "triggers", "updates"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	dpkg := []string{"dpkg", "--root=" + root, "--log=/dev/null"}
	asRoot(t, append(dpkg, "--install", d.own(".deb"))...)
	d.installed(t, root, "usr/share/zsh/vendor-completions/_netdelta")
	asRoot(t, append(dpkg, "--purge", "netdelta")...)
	gone(t, root)
}

// TestInstallRPM installs the package for Fedora in an empty root, with nothing that it could depend on, and removes it.
func TestInstallRPM(t *testing.T) {
	d := made(t)
	require.Tool(t, "rpm")
	root := t.TempDir()
	rpm := []string{"rpm", "--root", root, "--dbpath", "/var/lib/rpm"}
	asRoot(t, append(rpm, "--initdb")...)
	asRoot(t, append(rpm, "--install", "--nosignature", d.own(".rpm"))...)
	d.installed(t, root, "usr/share/zsh/site-functions/_netdelta")
	asRoot(t, append(rpm, "--erase", "netdelta")...)
	gone(t, root)
}

// TestInstallImage unpacks the image into an empty root, and runs it as its user, who has no rights.
func TestInstallImage(t *testing.T) {
	d := made(t)
	unpacked := t.TempDir()
	in(t, ".", nil, "tar", "-xf", d.file("-image.tar"), "-C", unpacked)
	named, err := layout.ImageIndexFromPath(unpacked)
	require.NoError(t, err)
	listed, err := named.IndexManifest()
	require.NoError(t, err)
	if len(listed.Manifests) != 1 {
		t.Fatalf("the archive names %d images", len(listed.Manifests))
	}
	index, err := named.ImageIndex(listed.Manifests[0].Digest)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	listed, err = index.IndexManifest()
	require.NoError(t, err)
	found := map[string]v1.Image{}
	for _, m := range listed.Manifests {
		image, err := index.Image(m.Digest)
		require.NoError(t, err)
		found[m.Platform.Architecture] = image
		config, err := image.ConfigFile()
		require.NoError(t, err)
		if config.Config.User != "65532:65532" || config.Config.Labels["org.opencontainers.image.version"] != d.version ||
			config.Config.Labels["org.opencontainers.image.licenses"] != "Apache-2.0" || config.Architecture != m.Platform.Architecture {
			t.Errorf("the image for %s is described as %+v", m.Platform.Architecture, config)
		}
	}
	if names := slices.Sorted(maps.Keys(found)); !slices.Equal(names, []string{"amd64", "arm64"}) {
		t.Fatalf("the images are for %v", names)
	}
	root := t.TempDir()
	files := mutate.Extract(found[runtime.GOARCH])
	defer files.Close()
	unpack(t, files, root)
	d.says(t, within(t, root, 65532, "/netdelta", "version"), "/netdelta")
}

// unpack writes the folders and files of an archive.
func unpack(t *testing.T, r io.Reader, root string) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(root, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, h.FileInfo().Mode().Perm())
		require.NoError(t, err)
		_, err = io.Copy(f, archive)
		require.NoError(t, errors.Join(err, f.Close()))
	}
}

// TestInstallPlugin does what Krew does with the manifest: it takes the archive for this machine by its checksum, copies the files that are
// named, and calls the program by the plugin's name.
func TestInstallPlugin(t *testing.T) {
	d := made(t)
	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
				}
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	require.NoError(t, yaml.Load([]byte(read(t, filepath.Join(d.folder, "netdelta.yaml"))), &plugin))
	if _, err := semver.ParseSemantic(plugin.Spec.Version); err != nil || strings.Contains(plugin.Spec.Version, "+") {
		t.Errorf("version %s: %v", plugin.Spec.Version, err)
	}
	var archs []string
	for _, p := range plugin.Spec.Platforms {
		arch := p.Selector.MatchLabels["arch"]
		archs = append(archs, arch)
		archive := filepath.Join(d.folder, filepath.Base(p.URI))
		if sum(t, archive) != p.SHA256 {
			t.Errorf("%s has another checksum than %s", archive, p.SHA256)
		}
		if arch != runtime.GOARCH {
			continue
		}
		unpacked, root := t.TempDir(), t.TempDir()
		in(t, ".", nil, "tar", "-xzf", archive, "-C", unpacked, "--no-same-owner")
		for _, f := range p.Files {
			in(t, ".", nil, "cp", filepath.Join(unpacked, f.From), filepath.Join(root, f.To))
		}
		require.NoError(t, os.Symlink(p.Bin, filepath.Join(root, "kubectl-netdelta")))
		d.says(t, within(t, root, 0, "/kubectl-netdelta", "version"), "/netdelta-agent")
	}
	if !slices.Equal(archs, []string{"amd64", "arm64"}) {
		t.Errorf("it is for %v", archs)
	}
}

// TestInstallFormula checks what Homebrew would do: the formula's checksums are those of the archives, which have all files that it installs.
func TestInstallFormula(t *testing.T) {
	d := made(t)
	text := read(t, filepath.Join(d.folder, "netdelta.rb"))
	if left := regexp.MustCompile(`@\w+@`).FindString(text); left != "" {
		t.Errorf("%s has no value", left)
	}
	if !strings.Contains(text, "version \""+strings.TrimPrefix(d.version, "v")+"\"\n") {
		t.Errorf("it has another version:\n%s", text)
	}
	sources := regexp.MustCompile(`url "\S+/(\S+)"\n\s+sha256 "(\w+)"`).FindAllStringSubmatch(text, -1)
	if len(sources) != 2 {
		t.Fatalf("%d sources:\n%s", len(sources), text)
	}
	installed := regexp.MustCompile(`"((?:completions/|man/)?[A-Za-z_*-]+(?:\.[a-z0-9.]+)?)"`).FindAllStringSubmatch(text[strings.Index(text, "def install"):strings.Index(text, "test do")], -1)
	for _, s := range sources {
		archive := filepath.Join(d.folder, s[1])
		if sum(t, archive) != s[2] {
			t.Errorf("%s has another checksum than %s", archive, s[2])
		}
		unpacked := t.TempDir()
		in(t, ".", nil, "tar", "-xzf", archive, "-C", unpacked, "--strip-components=1", "--no-same-owner")
		for _, name := range installed {
			if slices.Contains([]string{"kubectl-netdelta"}, name[1]) {
				continue // a link that the formula makes
			}
			if found, err := filepath.Glob(filepath.Join(unpacked, name[1])); err != nil || len(found) == 0 {
				t.Errorf("%s is not in %s, error %v", name[1], s[1], err)
			}
		}
	}
}

// TestRelease: each file has a checksum and is named by the provenance, the bills of materials name what is linked in, and the manifest for
// clusters runs the image.
func TestRelease(t *testing.T) {
	d := made(t)
	in(t, d.folder, nil, "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	var statement struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string
			Digest struct{ SHA256 string }
		}
		Predicate struct {
			BuildDefinition struct {
				ExternalParameters   struct{ Version, Image string } `json:"externalParameters"`
				ResolvedDependencies []struct {
					Digest map[string]string
				} `json:"resolvedDependencies"`
			} `json:"buildDefinition"`
			RunDetails struct{ Builder struct{ ID string } } `json:"runDetails"`
		}
	}
	provenance := d.file(".provenance.json")
	require.NoError(t, json.Unmarshal([]byte(read(t, provenance)), &statement))
	of := statement.Predicate.BuildDefinition
	if statement.Type != "https://in-toto.io/Statement/v1" || statement.PredicateType != "https://slsa.dev/provenance/v1" || of.ExternalParameters.Version != d.version ||
		len(of.ResolvedDependencies) == 0 || of.ResolvedDependencies[0].Digest["gitCommit"] == "" || statement.Predicate.RunDetails.Builder.ID == "" {
		t.Errorf("the provenance says %+v", statement)
	}
	named := map[string]string{}
	for _, s := range statement.Subject {
		named[s.Name] = s.Digest.SHA256
	}
	files, err := os.ReadDir(d.folder)
	require.NoError(t, err)
	for _, f := range files {
		path := filepath.Join(d.folder, f.Name())
		if f.Name() == "SHA256SUMS" || path == provenance {
			continue
		}
		if named[f.Name()] != sum(t, path) {
			t.Errorf("the provenance says of %s: %s", f.Name(), named[f.Name()])
		}
		delete(named, f.Name())
	}
	if len(named) > 0 {
		t.Errorf("the provenance names what is not there: %v", named)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		var materials struct {
			BOMFormat  string `json:"bomFormat"`
			Components []struct{ Name string }
		}
		require.NoError(t, json.Unmarshal([]byte(read(t, d.file("-linux-"+arch+".cdx.json"))), &materials))
		if materials.BOMFormat != "CycloneDX" || len(materials.Components) < 30 {
			t.Errorf("the bill of materials for %s is %s with %d components", arch, materials.BOMFormat, len(materials.Components))
		}
	}
	manifest := read(t, d.file("-kubernetes.yaml"))
	for _, part := range []string{"kind: Namespace\n", "kind: ServiceAccount\n", "kind: CronJob\n", "image: " + of.ExternalParameters.Image + "\n"} {
		if !strings.Contains(manifest, part) {
			t.Errorf("the manifest for clusters has no %q", part)
		}
	}
}

// TestProcessors: there is a file of each kind for each processor.
func TestProcessors(t *testing.T) {
	d := made(t)
	for _, suffix := range []string{".deb", ".rpm", ".tar.gz", ".cdx.json"} {
		for _, arch := range []string{"amd64", "arm64"} {
			if _, err := os.Stat(d.file("-linux-" + arch + suffix)); err != nil {
				t.Error(err)
			}
		}
	}
	require.Tool(t, "dpkg-deb")
	if arch := strings.TrimSpace(in(t, ".", nil, "dpkg-deb", "--field", d.file("-linux-arm64.deb"), "Architecture")); arch != "arm64" {
		t.Errorf("the package for arm64 is for %s", arch)
	}
}
