package repotest

import (
	"go/ast"
	"strings"
	"testing"
)

// TestSkipsSayWhatTheyNeed: tests are skipped by internal/require alone, whose words the list of skips is made of, and which fails
// where the machine has what a test was skipped for.
func TestSkipsSayWhatTheyNeed(t *testing.T) {
	for _, s := range sources(t, true) {
		if s.folder() == "internal/require" {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name := callee(call); (strings.HasPrefix(name, "t.") || strings.HasPrefix(name, "tb.") || strings.HasPrefix(name, "b.")) && strings.Contains(name, ".Skip") {
				t.Errorf("%s: %s: call internal/require", s.at(n), name)
			}
			return true
		})
	}
}
