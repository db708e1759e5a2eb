package repotest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// phrase matches links that make a reader go back in the sentence to find what they stand for. "The clients of the server" says
// what "those of it" does not.
var phrase = regexp.MustCompile(`(?i)\b(that of|those of|(of|to|for|by|from|with) who|whom|whoever|beside|nobody|comes? to|came to|t(old|ells?) (\w+ )?apart|of theirs|(is|are|was|were) none of|(is|are) no more|mend(s|ed|ing)?)\b`)

// ceilings is how many of these phrases may still stand in the comments, printed texts and documents of a folder at the root. A
// folder that is not named here has none.
func ceilings() map[string]int {
	return map[string]int{
		"agent": 3, "cli": 10, "docs": 18, "engine": 1, "experiment": 5, "insight": 1, "internal": 1, "network": 1, "probe": 5, "report": 10, "result": 2,
		"testbed": 15, "workload": 10,
	}
}

// TestPhrases holds the count of hard-to-read phrases in each folder at or below its ceiling.
func TestPhrases(t *testing.T) {
	found := map[string][]string{}
	note := func(path, where, text string) {
		room, _, _ := strings.Cut(path, "/")
		for _, match := range phrase.FindAllString(strings.Join(strings.Fields(text), " "), -1) {
			found[room] = append(found[room], fmt.Sprintf("%s: %q", where, match))
		}
	}
	for _, s := range sources(t, true) {
		if s.path == "internal/repotest/phrases_test.go" || generated.Match(s.text) {
			continue
		}
		for _, group := range s.tree.Comments {
			note(s.path, s.at(group), group.Text())
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if field, tagged := n.(*ast.Field); tagged {
				field.Tag = nil // what a record on disk is called
			}
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				note(s.path, s.at(n), text.Value)
			}
			return true
		})
	}
	for _, f := range documents(t) {
		for i, line := range strings.Split(string(fence.ReplaceAllFunc(f.text, blanked)), "\n") {
			note(f.path, fmt.Sprintf("%s:%d", f.path, i+1), line)
		}
	}
	allowed := ceilings()
	for room, most := range allowed {
		if left := len(found[room]); left < most/2 {
			t.Errorf("%s has %d phrases that are hard to read: lower its ceiling of %d", room, left, most)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(found)) {
		if places := found[room]; len(places) > allowed[room] {
			slices.SortFunc(places, cmp.Compare[string])
			t.Errorf("%s has %d phrases that are hard to read, at most %d: say who does what to what\n\t%s", room, len(places), allowed[room], strings.Join(places, "\n\t"))
		}
	}
}

// blanked is as many empty lines as there were.
func blanked(text []byte) []byte {
	return []byte(strings.Repeat("\n", strings.Count(string(text), "\n")))
}
