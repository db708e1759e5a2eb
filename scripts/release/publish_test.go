package release

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"netdelta/internal/require"
)

// root is the repository, from this package's folder.
const root = "../.."

// copyTree copies the sources, without what is made of them.
func copyTree(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "netdelta")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case slices.Contains([]string{".git", "bin", "dist", "runs", "site"}, name):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), text, info.Mode().Perm())
	}))
	return to
}

// in runs a command in a folder and returns what it printed.
func in(t *testing.T, dir string, environment []string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, complaints.String())
	}
	return string(out)
}

// refused runs a command that must fail, and returns what it printed.
func refused(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s is not refused: %s", strings.Join(command, " "), out)
	}
	return string(out)
}

// publish runs publish.sh in a copy of the sources.
func publish(t *testing.T, tree string, arguments ...string) {
	t.Helper()
	t.Log(in(t, tree, nil, append([]string{"scripts/publish.sh"}, arguments...)...))
}

// TestPublish: one command gives all sources another module path, sets the addresses, and can be run again.
func TestPublish(t *testing.T) {
	tree := copyTree(t)
	for _, p := range []struct{ path, image, releases string }{
		{"github.com/Someone/netdelta", "ghcr.io/someone/netdelta", "https://github.com/Someone/netdelta/releases/download"},
		{"forge.example/a/b.c/netdelta", "forge.example/a/b.c/netdelta", "https://forge.example/a/b.c/netdelta/releases/download"},
	} {
		publish(t, tree, p.path)
		if got := strings.TrimSpace(in(t, tree, nil, "go", "list", "-m")); got != p.path {
			t.Errorf("the module is %s, want %s", got, p.path)
		}
		// A package that is named by another path would be sought in Go's own library, and not be found.
		for name := range strings.Lines(in(t, tree, nil, "go", "list", "-test", "-deps", "./...")) {
			if strings.HasPrefix(name, "netdelta/") {
				t.Errorf("%s keeps its old name", strings.TrimSpace(name))
			}
		}
		if list := in(t, tree, nil, "gofmt", "-l", "cli", "cmd", "internal", "testbed"); list != "" {
			t.Errorf("not formatted: %s", list)
		}
		addresses, err := os.ReadFile(filepath.Join(tree, "deploy/addresses"))
		require.NoError(t, err)
		if want := "releases=" + p.releases + "\nimage=" + p.image + "\n"; !strings.HasSuffix(string(addresses), want) {
			t.Errorf("the addresses are\n%swant\n%s", addresses, want)
		}
		guide, err := os.ReadFile(filepath.Join(tree, "docs/install.md"))
		require.NoError(t, err)
		if n := strings.Count(string(guide), "go install "+p.path+"/cmd/...@latest"); n != 1 {
			t.Errorf("docs/install.md names the command %d times:\n%s", n, guide)
		}
		for _, tools := range []string{"tools", "tools/kubernetes/dns"} {
			if got := strings.TrimSpace(in(t, filepath.Join(tree, tools), nil, "go", "list", "-m")); got != p.path+"/"+tools {
				t.Errorf("the module in %s is %s", tools, got)
			}
		}
	}
	// Nothing but the addresses of the second call is left of both.
	for _, old := range []string{"Someone/netdelta", `"netdelta/internal/golden"`} {
		if out, _ := exec.CommandContext(t.Context(), "grep", "-rIl", "--exclude-dir=release", old, tree).Output(); len(out) > 0 {
			t.Errorf("%s is still in %s", old, out)
		}
	}
}

// TestPublishRefuses what is no address, and changes nothing then.
func TestPublishRefuses(t *testing.T) {
	for _, arguments := range [][]string{
		nil, {"netdelta"}, {"https://forge.example/a/netdelta"}, {"forge.example/a/other"}, {"forge.example:8443/a/netdelta"}, {"forge.example/a/netdelta", "forge.example/b/netdelta"},
		{"forge.example/a/netdelta", "--image", "a b"}, {"forge.example/a/netdelta", "--image", "forge.example/a:1"}, {"forge.example/a/netdelta", "--releases", "ftp:x"}, {"--other", "x"},
	} {
		err := exec.CommandContext(t.Context(), root+"/scripts/publish.sh", arguments...).Run()
		if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.ExitCode() != 2 {
			t.Errorf("publish.sh %q: %v, want exit status 2", arguments, err)
		}
	}
}

// TestGoInstall: netdelta is installed by its address and version, from a proxy that has what was published, without a network.
func TestGoInstall(t *testing.T) {
	require.Long(t)
	const path, version = "forge.example/someone/netdelta", "v0.2.0"
	tree := copyTree(t)
	publish(t, tree, path)

	proxy := t.TempDir()
	versions := filepath.Join(proxy, path, "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	mod, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	require.NoError(t, err)
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	for name, text := range map[string][]byte{"list": []byte(version + "\n"), version + ".mod": mod, version + ".info": info} {
		require.NoError(t, os.WriteFile(filepath.Join(versions, name), text, 0o644))
	}
	archive, err := os.Create(filepath.Join(versions, version+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromDir(archive, module.Version{Path: path, Version: version}, tree))
	require.NoError(t, archive.Close())

	programs := t.TempDir()
	environment := []string{
		"GOPROXY=file://" + proxy, "GOSUMDB=off", "GONOPROXY=", "GOPRIVATE=", "GOWORK=off", "GOBIN=" + programs, "GOMODCACHE=" + linkedCache(t), "CGO_ENABLED=0",
	}
	elsewhere := t.TempDir()
	in(t, elsewhere, environment, "go", "install", path+"/cmd/netdelta@"+version)
	if said := in(t, elsewhere, nil, filepath.Join(programs, "netdelta"), "--version"); strings.TrimSpace(said) != "netdelta version "+version {
		t.Errorf("the installed program says %q", said)
	}
}

// linkedCache is a cache of modules with all that are in the user's, which nothing is added to.
func linkedCache(t *testing.T) string {
	t.Helper()
	cache := strings.TrimSpace(in(t, root, nil, "go", "env", "GOMODCACHE"))
	linked := t.TempDir()
	t.Cleanup(func() { // modules are unpacked without the right to change them
		_ = exec.Command("chmod", "-R", "u+w", filepath.Join(linked, "forge.example")).Run()
	})
	for _, folder := range []string{"", "cache", "cache/download"} {
		require.NoError(t, os.MkdirAll(filepath.Join(linked, folder), 0o755))
		entries, err := os.ReadDir(filepath.Join(cache, folder))
		require.NoError(t, err)
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			if e.IsDir() && name != "cache" && name != "cache/download" {
				require.NoError(t, os.Symlink(filepath.Join(cache, name), filepath.Join(linked, name)))
			}
		}
	}
	return linked
}
