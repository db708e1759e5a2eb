package repotest

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"netdelta/internal/machine"
)

// An entry is changelog/unreleased/NAME.md or changelog/VERSION/NAME.md: one line "Kind: what changed", an empty line, then
// what it means to the user. See changelog/TEMPLATE.md.
var (
	entryPath  = regexp.MustCompile(`^changelog/(unreleased|\d+\.\d+\.\d+_\d{4}-\d{2}-\d{2})/[a-z0-9-]+\.md$`)
	entryTitle = regexp.MustCompile(`^(Security|Change|Enhancement|Bugfix): [A-Z].{5,70}[^.]$`)
)

// maxWidth is the longest line of an entry.
const maxWidth = 120

func TestChangelog(t *testing.T) {
	for _, f := range files(t, func(p string) bool { return strings.HasPrefix(p, "changelog/") && p != "changelog/TEMPLATE.md" }) {
		if !entryPath.MatchString(f.path) {
			t.Errorf("%s: an entry is changelog/unreleased/NAME.md, or changelog/VERSION_DATE/NAME.md once released", f.path)
			continue
		}
		for _, complaint := range faults(string(f.text)) {
			t.Errorf("%s: %s", f.path, complaint)
		}
	}
}

// faults are what is wrong with the form of an entry.
func faults(entry string) []string {
	var all []string
	title, rest, _ := strings.Cut(entry, "\n")
	body, found := strings.CutPrefix(rest, "\n")
	if !entryTitle.MatchString(title) {
		all = append(all, "the first line is \"Kind: What changed\", with the kind one of Security, Change, Enhancement, Bugfix, and no full stop")
	}
	if !found || strings.TrimSpace(body) == "" {
		all = append(all, "after an empty line comes what the change means to the user")
	}
	for _, line := range strings.Split(entry, "\n") {
		if len([]rune(line)) > maxWidth {
			all = append(all, "a line is too long: "+line[:40]+"...")
		}
	}
	return all
}

func TestFaults(t *testing.T) {
	for entry, want := range map[string]int{
		"Enhancement: Show the spread of builds\n\nThe table now has a column for it.\n": 0,
		"Show the spread of builds\n\nThe table now has a column for it.\n":              1,
		"Enhancement: Show the spread of builds.\n\nThe table.\n":                        1,
		"Enhancement: Show the spread of builds\n":                                       1,
		"Bugfix: Name the missing option\n\n" + strings.Repeat("x", maxWidth+1) + "\n":   1,
	} {
		if got := faults(entry); len(got) != want {
			t.Errorf("%.40q has %d faults %q, want %d", entry, len(got), got, want)
		}
	}
}

// TestChangelogIsRendered: CHANGELOG.md is what the notes say, and its newest release is the program's.
func TestChangelogIsRendered(t *testing.T) {
	got, err := os.ReadFile(root + "/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := exec.CommandContext(t.Context(), root+"/scripts/changelog.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("CHANGELOG.md is not what the notes of changelog/ say: make changelog writes it")
	}
	newest := regexp.MustCompile(`(?m)^## (\S+) \(`).FindSubmatch(want)
	if newest == nil || "v"+string(newest[1]) != machine.Release {
		t.Errorf("the newest release of the change log is %s, and the program's is %s: scripts/release.sh sets both", newest, machine.Release)
	}
}
