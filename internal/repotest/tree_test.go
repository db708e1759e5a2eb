package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository, from this package's folder.
const root = "../.."

// outside are folders at the root that are made, not kept; see .gitignore.
var outside = []string{".git", "bin", "dist", "runs", "site"}

// file is one file of the repository.
type file struct {
	path string // from the root, with slashes
	text []byte
}

// files reads those whose path is wanted.
func files(t *testing.T, wanted func(path string) bool) []file {
	t.Helper()
	var all []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, root), "/"))
		if slices.Contains(outside, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil // .git is a file in a worktree
		}
		if !d.Type().IsRegular() || !wanted(name) {
			return nil
		}
		text, err := os.ReadFile(path)
		all = append(all, file{name, text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no such file: this test checks nothing")
	}
	return all
}

// source is one Go file.
type source struct {
	file
	set  *token.FileSet
	tree *ast.File
}

// at says where in the repository a node stands.
func (s source) at(n ast.Node) string {
	p := s.set.Position(n.Pos())
	p.Filename = s.path
	return p.String()
}

// folder is the folder of the package.
func (s source) folder() string { return folderOf(s.path) }

func folderOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// sources parses the Go files of the main module; tests only when asked for.
func sources(t *testing.T, tests bool) []source {
	t.Helper()
	var all []source
	for _, f := range files(t, func(p string) bool {
		return strings.HasSuffix(p, ".go") && !strings.Contains(p, "testdata/") && (tests || !strings.HasSuffix(p, "_test.go"))
	}) {
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, f.path, f.text, parser.ParseComments)
		if err != nil {
			t.Fatalf("%v: the tree does not parse", err)
		}
		all = append(all, source{f, set, tree})
	}
	return all
}
