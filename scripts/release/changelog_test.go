package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/require"
)

// TestReleaseScript: a release takes the notes that are unreleased, says its version, and is at the top of the change log; notes that came
// later are added by a second call.
func TestReleaseScript(t *testing.T) {
	tree := copyTree(t)
	unreleased := filepath.Join(tree, "changelog/unreleased")
	require.NoError(t, os.RemoveAll(unreleased))
	add := func(name, text string) {
		require.NoError(t, os.MkdirAll(unreleased, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(unreleased, name), []byte(text), 0o644))
	}
	add("first-thing.md", "Change: Do it otherwise\n\nIt is done otherwise.\n\nSo do it.\n")
	in(t, tree, nil, "scripts/release.sh", "98.7.6", "2030-01-02")
	add("second-thing.md", "Security: Close a hole\n\nIt is closed.\n")
	in(t, tree, nil, "scripts/release.sh", "98.7.6")
	if _, err := os.Stat(unreleased); !os.IsNotExist(err) {
		t.Errorf("the folder of unreleased notes: %v", err)
	}
	for _, name := range []string{"first-thing.md", "second-thing.md"} {
		if _, err := os.Stat(filepath.Join(tree, "changelog/98.7.6_2030-01-02", name)); err != nil {
			t.Error(err)
		}
	}
	if text := read(t, filepath.Join(tree, "internal/machine/version.go")); !strings.Contains(text, "const Release = \"v98.7.6\"\n") {
		t.Error("the program does not say the version")
	}
	log := read(t, filepath.Join(tree, "CHANGELOG.md"))
	last := 0
	for _, part := range []string{"\n## 98.7.6 (2030-01-02)\n", "\n### Security\n\n**Close a hole.**\nIt is closed.\n", "\n**Do it otherwise.**\nIt is done otherwise.\n\nSo do it.\n", "\n## 0.1.0 (2026-11-26)\n"} {
		at := strings.Index(log, part)
		if at < last {
			t.Errorf("%q is not in the change log, or too early", part)
		}
		last = max(last, at)
	}
	add("first-thing.md", "Change: Do it once more\n\nIt is done once more.\n")
	if out := refused(t, tree, "scripts/release.sh", "98.7.6"); !strings.Contains(out, "first-thing.md") {
		t.Errorf("a note of the same name: %s", out)
	}
	refused(t, tree, "scripts/release.sh", "1.2")
	refused(t, tree, "scripts/release.sh", "1.2.3", "yesterday")
}
