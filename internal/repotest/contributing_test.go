package repotest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// addition is something that was added to the program once, and shows what the next of its kind will touch.
type addition struct {
	section string // of CONTRIBUTING.md
	named   string // what stands in each place that it touches: its name, or the path of its package
}

func additions() []addition {
	return []addition{
		{"Add a network", `"macvlan"`},
		{"Add a workload", `"tcp-crr"`},
		{"Add a workload", `"netdelta/workload/tcpcrr"`},
		{"Add a provider of testbeds", "joined.NewDriver("},
		{"Add a format", `"netdelta/report/markdown"`},
	}
}

// place is a path between backticks: it has a slash or an ending.
var place = regexp.MustCompile("`([a-z_./-]+/[a-z_./-]*)`")

// TestContributingIsWhole: CONTRIBUTING.md names every file, or its folder, that an addition touches, and nothing that is not there.
func TestContributingIsWhole(t *testing.T) {
	text, err := os.ReadFile(root + "/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string][]string{}
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		title, list, _ := strings.Cut(section, "\n")
		list, _, _ = strings.Cut(list, "\n## ")
		for _, m := range place.FindAllStringSubmatch(list, -1) {
			places[title] = append(places[title], m[1])
			if _, err := os.Stat(root + "/" + m[1]); err != nil {
				t.Errorf("CONTRIBUTING.md, %s: there is no %s", title, m[1])
			}
		}
	}
	code := files(t, func(p string) bool {
		return (strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, "_test.go") || strings.HasPrefix(p, "schema/")) &&
			!apart.MatchString(p) && !strings.Contains(p, "testdata/")
	})
	for _, a := range additions() {
		touched := 0
		for _, f := range code {
			if !strings.Contains(string(f.text), a.named) {
				continue
			}
			touched++
			if !within(f.path, places[a.section]) {
				t.Errorf("CONTRIBUTING.md, %s: %s is touched too, since it has %s", a.section, f.path, a.named)
			}
		}
		if touched == 0 {
			t.Errorf("%s is named nowhere: this check looks for the wrong example", a.named)
		}
	}
}

// within is true for a path that is named, or is in a folder that is.
func within(path string, named []string) bool {
	for _, n := range named {
		if path == n || strings.HasSuffix(n, "/") && strings.HasPrefix(path, n) {
			return true
		}
	}
	return false
}
