package repotest

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestSequentialPackages: what scripts/test.sh runs without the race detector, because nothing in it runs at once, has no go statement,
// and imports nothing that only such code needs. What is made once, by sync.OnceValue and its like, is the library's own to guard.
func TestSequentialPackages(t *testing.T) {
	script := files(t, func(path string) bool { return path == "scripts/test.sh" })[0]
	_, list, found := strings.Cut(string(script.text), "sequential() {")
	list, _, ended := strings.Cut(list, "END\n}")
	if !found || !ended {
		t.Fatal("scripts/test.sh lists no sequential packages")
	}
	var checked []string
	for _, s := range sources(t, false) {
		for _, line := range strings.Fields(list) {
			folder, is := strings.CutPrefix(line, "netdelta/")
			below, all := strings.CutSuffix(folder, "/...")
			if !is || s.folder() != folder && !(all && (s.folder() == below || strings.HasPrefix(s.folder(), below+"/"))) {
				continue
			}
			checked = append(checked, line)
			for _, where := range atOnce(s) {
				t.Errorf("%s: runs at once with others; package %s is listed as sequential in scripts/test.sh", where, s.folder())
			}
		}
	}
	for _, line := range strings.Fields(list) {
		if strings.HasPrefix(line, "netdelta/") && !slices.Contains(checked, line) {
			t.Errorf("scripts/test.sh lists %s, which has no code", line)
		}
	}
}

// atOnce are the places where a file starts what runs at once, or guards what several use at once.
func atOnce(s source) []string {
	var places []string
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SendStmt:
			places = append(places, s.at(n))
		case *ast.ImportSpec:
			if path, _ := strconv.Unquote(n.Path.Value); path == "sync/atomic" || path == "golang.org/x/sync/errgroup" {
				places = append(places, s.at(n))
			}
		case *ast.SelectorExpr:
			if x, is := n.X.(*ast.Ident); is && x.Name == "sync" && !strings.HasPrefix(n.Sel.Name, "Once") {
				places = append(places, s.at(n))
			}
		}
		return true
	})
	return places
}
