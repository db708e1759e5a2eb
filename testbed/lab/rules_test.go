package lab

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
)

// The kernel must have understood each rule as the plan means it: nft, which knows nothing of this program, reads them back.
func TestRulesReadBack(t *testing.T) {
	require.Namespaces(t)
	nft := require.Tool(t, "nft")
	nat, err := network.Find(network.Catalogue(), "bridge-nat")
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			top, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 2, Family: family})
			if err != nil {
				t.Fatal(err)
			}
			p, err := network.Filtered(nat, 3).Plan(top)
			if err != nil {
				t.Fatal(err)
			}
			tables := 0
			for _, op := range p.Ops {
				if rules, ok := op.(network.Rules); ok && rules.In == network.InNode(0) {
					tables++
					readBack(t, nft, rules)
				}
			}
			if tables != 2 {
				t.Errorf("the plan has %d tables for a node, want 2", tables)
			}
		})
	}
}

// readBack gives rules to a namespace, compares what nft finds there, and deletes them.
func readBack(t *testing.T, nft string, rules network.Rules) {
	t.Helper()
	s, err := newSpace("node0", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	err = s.ns.WithFD(func(fd int) error { return addRules(fd, rules) })
	err = errors.Join(err, s.ns.Do(func() error {
		var err error
		out, err = exec.Command(nft, "-n", "list", "ruleset").CombinedOutput()
		return err
	}))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if diff := cmp.Diff(words(strings.TrimPrefix(rules.String(), "node0: ")), words(string(out))); diff != "" {
		t.Errorf("the plan's rules and those that nft reads differ:\n%s", diff)
	}
	if err := s.ns.WithFD(deleteRules); err != nil {
		t.Fatal(err)
	}
	if err := s.ns.Do(func() error {
		out, err := exec.Command(nft, "list", "ruleset").CombinedOutput()
		if len(out) > 0 {
			t.Errorf("after the rules were deleted there is %s", out)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

// words puts a listing in a form in which spaces, names of priorities and prefixes of single addresses make no difference.
func words(listing string) []string {
	for _, r := range []struct{ find, put string }{
		{`/(32|128)\b`, ""}, {`priority dstnat\b`, "priority -100"}, {`priority filter\b`, "priority 0"}, {`priority srcnat\b`, "priority 100"},
		{`ct state 0x2,0x4\b`, "ct state established,related"}, {`ct state related,established`, "ct state established,related"},
	} {
		listing = regexp.MustCompile(r.find).ReplaceAllString(listing, r.put)
	}
	var lines []string
	for line := range strings.Lines(listing) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
