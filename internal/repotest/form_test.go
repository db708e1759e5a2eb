package repotest

import (
	"bytes"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackageDocs: each package says what it is, in one place.
func TestPackageDocs(t *testing.T) {
	docs := map[string][]string{}
	for _, s := range sources(t, false) {
		if s.tree.Doc == nil {
			docs[s.folder()] = append(docs[s.folder()], "")
			continue
		}
		docs[s.folder()] = append(docs[s.folder()], s.path)
		start := "Package " + s.tree.Name.Name + " "
		if s.tree.Name.Name == "main" {
			start = "Command " + s.folder()[strings.LastIndexByte(s.folder(), '/')+1:] + " "
		}
		if text := s.tree.Doc.Text(); !strings.HasPrefix(text, start) {
			t.Errorf("%s: the package's comment starts with %.30q, want %q", s.at(s.tree), text, start)
		}
	}
	for folder, paths := range docs {
		paths = slices.DeleteFunc(paths, func(p string) bool { return p == "" })
		if len(paths) != 1 {
			t.Errorf("%s has %d package comments (%s), want one", folder, len(paths), strings.Join(paths, ", "))
		}
	}
}

// maxLines is what a reader keeps in mind of one file.
const maxLines = 400

// longFiles may be longer, for a reason.
var longFiles = map[string]string{}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestFileLength(t *testing.T) {
	for _, s := range sources(t, false) {
		lines := bytes.Count(s.text, []byte("\n"))
		_, excused := longFiles[s.path]
		switch {
		case generated.Match(s.text):
		case lines > maxLines && !excused:
			t.Errorf("%s has %d lines, at most %d: cut it by concept", s.path, lines, maxLines)
		case lines <= maxLines && excused:
			t.Errorf("%s has %d lines and needs no excuse any more", s.path, lines)
		}
	}
}

// TestFolderNames: a package is named by what it is about.
func TestFolderNames(t *testing.T) {
	vague := regexp.MustCompile(`(^|/)(pkg|utils?|common|helpers?|models?|misc|base|lib)(/|$)`)
	for _, f := range files(t, func(string) bool { return true }) {
		if vague.MatchString(folderOf(f.path)) && !strings.Contains(f.path, "testdata/") {
			t.Errorf("%s: the folder's name says nothing of what is in it", f.path)
		}
	}
}

// TestNoInit: nothing happens before main but what can be seen in it.
func TestNoInit(t *testing.T) {
	for _, s := range sources(t, true) {
		for _, d := range s.tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: func init hides what the program does; build the value in a function and hand it down", s.at(d))
			}
		}
	}
}

// unfinished is a word that has no place in what is shipped.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

func TestNothingUnfinished(t *testing.T) {
	for _, s := range sources(t, true) {
		for _, group := range s.tree.Comments {
			for _, c := range group.List {
				if word := unfinished.FindString(c.Text); word != "" {
					t.Errorf("%s: the comment says %s: do it, or write down as a limit what is not done", s.at(c), word)
				}
			}
		}
	}
}
