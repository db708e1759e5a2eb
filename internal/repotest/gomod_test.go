package repotest

import (
	"encoding/json"
	"os/exec"
	"testing"
)

// TestGoMod: what is built is what go.mod says, for everybody, and the checkers are built by the same Go.
func TestGoMod(t *testing.T) {
	versions := map[string]string{}
	for _, folder := range []string{".", "tools"} {
		cmd := exec.Command("go", "mod", "edit", "-json")
		cmd.Dir = root + "/" + folder
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("go mod edit -json in %s: %v", folder, err)
		}
		var mod struct {
			Go        string
			Replace   []struct{ Old struct{ Path string } }
			Exclude   []struct{ Path string }
			Tool      []struct{ Path string }
			Require   []struct{ Path string }
			Toolchain string
		}
		if err := json.Unmarshal(text, &mod); err != nil {
			t.Fatal(err)
		}
		for _, r := range mod.Replace {
			t.Errorf("%s/go.mod replaces %s: who imports or installs netdelta would get another one", folder, r.Old.Path)
		}
		for _, e := range mod.Exclude {
			t.Errorf("%s/go.mod excludes a version of %s, which holds only here", folder, e.Path)
		}
		if len(mod.Require) == 0 {
			t.Errorf("%s/go.mod requires nothing: this check looks at nothing", folder)
		}
		if folder == "." && len(mod.Tool) > 0 {
			t.Error("go.mod has tools: they belong into tools/go.mod, where they add no module to the program")
		}
		versions[folder] = mod.Go
	}
	if versions["."] != versions["tools"] {
		t.Errorf("go.mod asks for Go %s and tools/go.mod for %s", versions["."], versions["tools"])
	}
}
