package repotest

import (
	"go/ast"
	"strings"
	"testing"
)

// TestExportedNamesAreExplained: each exported name has a comment; a function's and a type's starts with the name.
func TestExportedNamesAreExplained(t *testing.T) {
	for _, s := range sources(t, false) {
		if s.tree.Name.Name == "main" {
			continue
		}
		for _, d := range s.tree.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) && !obvious(d) {
					explained(t, s, d.Name, d.Doc)
				}
			case *ast.GenDecl:
				group(t, s, d)
			}
		}
	}
}

// group checks a declaration of types, constants or variables. One comment may stand for all constants or variables of a group.
func group(t *testing.T, s source, d *ast.GenDecl) {
	t.Helper()
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				doc := spec.Doc
				if doc == nil && !d.Lparen.IsValid() {
					doc = d.Doc
				}
				explained(t, s, spec.Name, doc)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					t.Errorf("%s: %s has no comment", s.at(name), name.Name)
				}
			}
		}
	}
}

func explained(t *testing.T, s source, name *ast.Ident, doc *ast.CommentGroup) {
	t.Helper()
	text := strings.TrimSpace(doc.Text())
	if text == "" {
		t.Errorf("%s: %s has no comment", s.at(name), name.Name)
		return
	}
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	if !strings.HasPrefix(text, name.Name) {
		t.Errorf("%s: the comment of %s starts with %.30q, want its name", s.at(name), name.Name, text)
	}
}

// receiver is the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if ident, ok := n.(*ast.Ident); ok && name == "" {
			name = ident.Name
		}
		return name == ""
	})
	return name
}

// obvious are one-line methods that the standard library's interfaces explain.
func obvious(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return false
	}
	switch d.Name.Name {
	case "Error", "Unwrap", "Is", "String", "Len", "Less", "Swap":
		return d.Body != nil && len(d.Body.List) == 1
	}
	return false
}
