package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// TestHelp: each verb has examples, its help fits two screens of 80 columns and names all flags, and --help-all explains each.
func TestHelp(t *testing.T) {
	env := &environment{in: strings.NewReader(""), out: io.Discard, err: io.Discard, terminal: io.Discard, getenv: os.Getenv, workloads: catalogue.Workloads(), lab: lab.NewDriver(network.Catalogue())}
	root := newRoot(env)
	if n := strings.Count(helpText(root, 80), "\n"); n > helpLines {
		t.Errorf("the help of the program has %d lines, at most %d", n, helpLines)
	}
	verbs := 0
	for _, verb := range allVerbs(root) {
		if verb.Hidden {
			continue
		}
		verbs++
		path := verb.CommandPath()
		if !strings.Contains(verb.Example, root.Name()+" ") {
			t.Errorf("%s has no example", path)
		}
		short := helpText(verb, 80)
		if n := strings.Count(short, "\n"); n > helpLines {
			t.Errorf("the help of %s has %d lines, at most %d:\n%s", path, n, helpLines, short)
		}
		whole := short
		if flag := verb.Flags().Lookup(wholeFlag); flag != nil {
			if err := flag.Value.Set("true"); err != nil {
				t.Fatal(err)
			}
			whole = helpText(verb, 80)
		}
		for name := range visible(verb.LocalFlags()) {
			if name != "help" && (!strings.Contains(short, "--"+name) || !strings.Contains(whole, "\n  --"+name+" ") && !strings.Contains(whole, ", --"+name+" ") && !strings.Contains(whole, "\n  --"+name+"\n")) {
				t.Errorf("the help of %s does not name --%s", path, name)
			}
		}
	}
	if verbs < 25 {
		t.Errorf("only %d verbs were looked at", verbs)
	}
}

// TestProblemsFirst: the doctor says first what is wrong.
func TestProblemsFirst(t *testing.T) {
	var out strings.Builder
	env := &environment{out: &out, terminal: io.Discard, getenv: os.Getenv}
	if err := env.printFindings([]finding{
		{Topic: "kernel", OK: true, Says: "6.18"}, {Topic: "firewall", Says: "needs nftables", Fix: "load them"}, {Topic: "ebpf", OK: true, Says: "loaded"}, {Topic: "ipvs", Says: "needs IPVS"},
	}); err != nil {
		t.Fatal(err)
	}
	var topics []string
	for line := range strings.Lines(out.String()) {
		if topic := strings.Fields(line[2:])[0]; line[0] != ' ' {
			topics = append(topics, line[:2]+" "+topic)
		}
	}
	if got := strings.Join(topics, ", "); got != "-- firewall, -- ipvs, ok kernel, ok ebpf" {
		t.Errorf("the order is %s:\n%s", got, out.String())
	}
}
