package repotest

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// variables may be package-level although constant does not allow their kind; each has a reason.
var variables = map[string]string{}

// errorName is how a sentinel error is called.
var errorName = regexp.MustCompile(`^(Err|err)[A-Z]`)

// TestPackageVariables: what a package keeps for the whole program can't be changed, so that two runs in one process, and two
// tests, never meet there.
func TestPackageVariables(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t, false) {
		for _, d := range s.tree.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				for i, name := range v.Names {
					key := s.folder() + "." + name.Name
					if constant(group, v, i) {
						continue
					}
					if _, excused := variables[key]; !excused {
						t.Errorf("%s: %s is a package-level variable: make it a constant or the result of a function", s.at(name), key)
					}
					used[key] = true
				}
			}
		}
	}
	for key := range variables {
		if !used[key] {
			t.Errorf("%s needs no excuse any more", key)
		}
	}
}

// constant tells variables that nothing changes: interface guards, sentinel errors, regular expressions, embedded files and
// values that are computed once.
func constant(group *ast.GenDecl, v *ast.ValueSpec, i int) bool {
	name := v.Names[i].Name
	if name == "_" || embedded(group.Doc) || embedded(v.Doc) {
		return true
	}
	if i >= len(v.Values) {
		return false
	}
	call, ok := v.Values[i].(*ast.CallExpr)
	if !ok {
		return false
	}
	switch callee(call) {
	case "errors.New", "fmt.Errorf":
		return errorName.MatchString(name)
	case "regexp.MustCompile", "sync.OnceValue", "sync.OnceValues", "sync.OnceFunc":
		return true
	}
	return false
}

func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// callee is the function that is called, as package.Name.
func callee(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := selector.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return from.Name + "." + selector.Sel.Name
}
