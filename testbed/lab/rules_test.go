package lab

import (
	"errors"
	"net/netip"
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
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		t.Run(string(family), func(t *testing.T) {
			node, pod, pods := netip.MustParsePrefix("198.18.0.1/32"), netip.MustParseAddr("198.19.0.10"), netip.MustParsePrefix("198.19.0.0/24")
			if family == result.IPv6 {
				node, pod, pods = netip.MustParsePrefix("2001:2::1/128"), netip.MustParseAddr("2001:2:0:100::10"), netip.MustParsePrefix("2001:2:0:100::/64")
			}
			readBack(t, nft, network.Rules{In: network.InNode(0), Family: family, Table: "netdelta", Chains: []network.Chain{
				{Name: "into", NAT: true, Hook: network.Prerouting, Priority: -100, Rules: []network.Rule{
					{To: node, Protocol: network.TCP, FirstPort: 20000, LastPort: 20999, Do: network.TranslateDestination, Destination: pod},
					{To: node, Protocol: network.UDP, FirstPort: 20000, LastPort: 20999, Do: network.TranslateDestination, Destination: pod},
				}},
				{Name: "pass", Hook: network.Forwarding, Drop: true, Rules: []network.Rule{
					{Out: "br0", Established: true}, {In: "br0", NotOut: "br0"}, {From: pods, Do: network.Drop},
				}},
				{Name: "out", NAT: true, Hook: network.Postrouting, Priority: 100, Rules: []network.Rule{{From: pods, NotOut: "br0", Do: network.Masquerade}}},
			}})
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
