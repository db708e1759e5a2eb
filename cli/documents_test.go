package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"netdelta/network"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// What documents tell the reader to type is a verb of the program, with flags of this verb and values that they take.
func TestDocumentedCalls(t *testing.T) {
	env := &environment{out: io.Discard, err: io.Discard, getenv: os.Getenv, workloads: catalogue.Workloads(), lab: lab.NewDriver(network.Catalogue())}
	root := newRoot(env)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	var paths []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md", "../extras/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	calls := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range callsIn(string(text)) {
			calls++
			if why := misfit(env, root, call); why != "" {
				t.Errorf("%s: netdelta %s: %s", path, strings.Join(call, " "), why)
			}
		}
	}
	if calls < 200 {
		t.Errorf("found %d calls: this looks in the wrong place", calls)
	}
}

// callsIn are the calls of netdelta that a document shows: lines of code, and what stands between backticks.
func callsIn(text string) (calls [][]string) {
	line := regexp.MustCompile(`^\s*(?:\$ |- |run: |sudo )*(?:bin/)?netdelta ([a-z].*)`)
	inline := regexp.MustCompile("`(?:sudo )?netdelta ([a-z][^`]*)`")
	fenced := false
	for l := range strings.SplitSeq(text, "\n") {
		var found [][]string
		switch {
		case strings.HasPrefix(strings.TrimSpace(l), "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(l, "    ") || strings.HasPrefix(l, "\t"):
			found = line.FindAllStringSubmatch(l, -1)
		default:
			found = inline.FindAllStringSubmatch(l, -1)
		}
		for _, m := range found {
			calls = append(calls, call(m[1])...)
		}
	}
	return calls
}

// call is the words of a call without what explains it and what follows it; a call for each verb of a|b.
func call(text string) (calls [][]string) {
	text = regexp.MustCompile(`   *|#| [|>&;\\](?: |$)| -- `).Split(text, 2)[0]
	words := strings.Fields(text)
	for i, w := range words[:min(2, len(words))] {
		if strings.Contains(w, "|") && !strings.ContainsAny(w, "[A") {
			for verb := range strings.SplitSeq(w, "|") {
				calls = append(calls, slices.Concat(words[:i], []string{verb}, words[i+1:]))
			}
			return calls
		}
	}
	return [][]string{words}
}

// misfit is why the program does not take a call, "" where it does.
func misfit(env *environment, root *cobra.Command, words []string) string {
	cmd, rest, err := root.Find(words)
	if err != nil || cmd == root {
		return "there is no such verb"
	}
	if cmd.HasSubCommands() && len(rest) > 0 && rest[0][0] >= 'a' {
		return "there is no such verb"
	}
	cmd.InitDefaultHelpFlag()
	var own []string // networks that the call's study names itself
	for _, w := range rest {
		if text, err := os.ReadFile(filepath.Join("..", w)); err == nil && strings.HasSuffix(w, ".yaml") {
			for _, found := range regexp.MustCompile(`- name: (\S+)`).FindAllStringSubmatch(string(text), -1) {
				own = append(own, found[1])
			}
		}
	}
	for i, w := range rest {
		name, value, given := strings.Cut(strings.Trim(strings.TrimLeft(w, "["), "],."), "=")
		name, long := strings.CutPrefix(name, "--")
		if !long || cmd.DisableFlagParsing {
			continue
		}
		f := cmd.Flag(name)
		if f == nil {
			return "it has no --" + name
		}
		if !given && f.NoOptDefVal == "" && i+1 < len(rest) {
			value = rest[i+1]
		}
		if why := mistaken(env, name, strings.Trim(value, "'\""), own); why != "" {
			return why
		}
	}
	return ""
}

// mistaken is the word of a flag's value that names nothing, "" where there is none. Words with a capital are for the reader to fill in.
func mistaken(env *environment, flag, value string, networks []string) string {
	known := map[string][]string{
		"testbed": kindNames(func(kind) bool { return true }), "workloads": env.workloadNames(), "workload": env.workloadNames(), "networks": slices.Concat(networks, networkNames()),
	}
	for _, k := range kinds() {
		if k.networks != nil {
			known["networks"] = append(known["networks"], k.networks.Names...)
		}
	}
	known["network"], known["vs"], known["baseline"] = known["networks"], known["networks"], known["networks"]
	for word := range strings.SplitSeq(value, ",") {
		if known[flag] != nil && !strings.ContainsAny(word, ":.ABCDEFGHIJKLMNOPQRSTUVWXYZ") && !slices.Contains(known[flag], word) {
			return "--" + flag + ": there is no " + word
		}
	}
	return ""
}
