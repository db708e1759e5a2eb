package repotest

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

func documents(t *testing.T) []file {
	t.Helper()
	return files(t, func(p string) bool { return strings.HasSuffix(p, ".md") && !strings.Contains(p, "testdata/") })
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```[ \t]*$")
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	scheme  = regexp.MustCompile(`^[a-z]+:`)
)

// TestLinksResolve: a link within the repository leads to a file, and to a heading in it.
func TestLinksResolve(t *testing.T) {
	for _, f := range documents(t) {
		for _, m := range link.FindAllSubmatch(fence.ReplaceAll(f.text, nil), -1) {
			target := string(m[1])
			if scheme.MatchString(target) {
				continue
			}
			name, anchor, _ := strings.Cut(target, "#")
			to := f.path
			if name != "" {
				to = path.Join(path.Dir(f.path), name)
			}
			text, err := os.ReadFile(root + "/" + to)
			if info, statErr := os.Stat(root + "/" + to); statErr != nil {
				t.Errorf("%s links to %s, which is not there", f.path, target)
				continue
			} else if info.IsDir() {
				continue
			}
			if err != nil {
				t.Error(err)
			} else if anchor != "" && !anchors(text)[anchor] {
				t.Errorf("%s links to %s, where there is no such heading", f.path, target)
			}
		}
	}
}

// anchors are the fragments under which the headings of a document can be reached.
func anchors(text []byte) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllSubmatch(fence.ReplaceAll(text, nil), -1) {
		var b strings.Builder
		for _, r := range strings.ToLower(string(m[1])) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		all[b.String()] = true
	}
	return all
}

var (
	target  = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	command = regexp.MustCompile("(?m)(?:^[ \t]*(?:\\$ )?|`)(?:[A-Z_]+=\\S+ )*make((?: [a-z][a-z0-9-]*)+)")
	script  = regexp.MustCompile("(?m)(?:^[ \t]*(?:\\$ )?|`)(\\.ci/[a-z]+|scripts/[a-z]+\\.sh)")
)

// TestCommandsExist: what the documents tell the reader to type is there.
func TestCommandsExist(t *testing.T) {
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, m := range target.FindAllSubmatch(makefile, -1) {
		targets[string(m[1])] = true
	}
	shown := map[string]bool{}
	for _, f := range documents(t) {
		for _, m := range command.FindAllSubmatch(f.text, -1) {
			for _, name := range strings.Fields(string(m[1])) {
				shown[f.path+" "+name] = true
				if !targets[name] {
					t.Errorf("%s: there is no `make %s`", f.path, name)
				}
			}
		}
		for _, m := range script.FindAllSubmatch(f.text, -1) {
			if _, err := os.Stat(root + "/" + string(m[1])); err != nil {
				t.Errorf("%s: there is no %s", f.path, m[1])
			}
		}
	}
	for _, name := range []string{"run", "test"} {
		if !shown["README.md "+name] {
			t.Errorf("README.md does not show `make %s`", name)
		}
	}
}

// TestDecisionsAreNumbered: each record of a decision has a number of its own and the parts that make it one.
func TestDecisionsAreNumbered(t *testing.T) {
	seen := map[string]string{}
	name := regexp.MustCompile(`^docs/adr/(\d{4})-[a-z0-9-]+\.md$`)
	for _, f := range files(t, func(p string) bool { return strings.HasPrefix(p, "docs/adr/") }) {
		m := name.FindStringSubmatch(f.path)
		if m == nil {
			t.Errorf("%s: a decision is docs/adr/NNNN-what-was-decided.md", f.path)
			continue
		}
		if other, taken := seen[m[1]]; taken {
			t.Errorf("%s has the number of %s", f.path, other)
		}
		seen[m[1]] = f.path
		for _, part := range []string{"# ", "## Context", "## Decision", "## Consequences"} {
			if !strings.Contains("\n"+string(f.text), "\n"+part) {
				t.Errorf("%s has no %q", f.path, part)
			}
		}
	}
}
