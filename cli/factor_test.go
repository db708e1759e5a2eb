package cli_test

import (
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// A factor on the command line becomes settings of the run, each with a baseline of its own, and what it does to each network is
// in the record and in the tables.
func TestFactorHasEffects(t *testing.T) {
	require.Long(t)
	dir := labFolder(t)
	guarded := testbed.Spec{Network: "bridge", Conditions: result.Conditions{Policy: result.PolicyNFTables}.Plain()}
	require.Need(t, "policies of nftables", lab.NewDriver(network.Catalogue()).Supports(t.Context(), guarded) == nil)
	ran, builds := undisturbed(t, dir, "--networks", "host,bridge", "--placement", "cross-node", "--factor", "policy=none,nftables",
		"--factor", "policy.rules=10,4000")
	ran.shows(t, "policy nftables, 4000 rules", "Policy from none to nftables:10 ", "Policy from none to nftables:4000 ")
	run := decode(t, call(t, dir, statusDone, "show", "run", "--json").stdout)
	settings := map[result.Conditions]bool{}
	for _, c := range run.Cells {
		settings[c.Params.Conditions] = true
	}
	if len(settings) != 3 {
		t.Errorf("the run has the conditions %v, want none, 10 rules and 4000 rules", settings)
	}
	seen := map[string]bool{}
	for _, e := range run.Effects {
		// A build in which all rounds were disturbed does not count.
		if e.Factor != "policy" || e.From != "none" || e.Headline && (e.RatioLow == nil || e.Blocks > builds) {
			t.Errorf("%+v", e)
		}
		if e.Headline {
			seen[e.Network+" "+e.To] = true
		}
		// Four thousand rules, passed twice in a round trip, are more than anything else that happens on this machine.
		if e.Headline && e.To == "nftables:4000" && e.Ratio < 1.1 {
			t.Errorf("four thousand rules cost %s nothing: %.3f", e.Network, e.Ratio)
		}
	}
	for _, want := range []string{"host nftables:10", "host nftables:4000", "bridge nftables:10", "bridge nftables:4000"} {
		if !seen[want] {
			t.Errorf("there is no effect of %s", want)
		}
	}
	conforms(t, "result.schema.json", []byte(read(t, dir+"/run/result.json")))
	call(t, dir, statusDone, "report", "run", "--format", "csv", "--what", "effects").shows(t, "nftables:4000")
}
