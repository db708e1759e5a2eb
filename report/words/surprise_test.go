package words

import (
	"slices"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Each figure that readers wonder about is explained where it occurs, and nowhere else.
func TestSurprises(t *testing.T) {
	delta := func(name string, verdict stats.Verdict, workload string, size int64) result.Delta {
		d := result.Delta{Network: name, Baseline: "host", Headline: true, Judgement: result.Judgement{Verdict: string(verdict)}}
		d.Setting = result.Setting{Workload: workload, Placement: result.SameNode}
		d.Params.Message = unit.Bytes(size)
		return d
	}
	for _, c := range []struct {
		delta result.Delta
		about string // "" for nothing
	}{
		{delta("sockmap", stats.Faster, "tcp-rr", 300), "sockmap"},
		{delta("sockmap", stats.Slower, "udp-rr", 300), ""},
		{delta("xdp", stats.Slower, "tcp-rr", 300), "xdp"},
		{delta("macvlan", stats.Slower, "udp-rr", 2048), "Datagrams"},
		{delta("macvlan", stats.Slower, "tcp-rr", 2048), ""},
		{delta("macvlan", stats.Slower, "udp-rr", 1024), ""},
	} {
		run := result.Run{Deltas: []result.Delta{c.delta}, Cells: []result.Cell{{Network: "host", Role: result.RoleBaseline}}}
		got := Surprises(run)
		if c.about == "" && len(got) > 0 || c.about != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.about)) {
			t.Errorf("%s, %s: %q, want something about %q", c.delta.Network, c.delta.Workload, got, c.about)
		}
	}
}

// Over servers Docker's host networking is metal, not host.
func TestUsersOverServers(t *testing.T) {
	here, servers := Users(result.Run{}), Users(result.Run{Environment: result.Environment{Servers: []result.Server{{}}}})
	const docker = "Docker --network host"
	if !slices.Contains(here["host"], docker) || !slices.Contains(servers[network.Metal], docker) || len(servers["host"]) > 0 {
		t.Errorf("here %q, over servers host %q and metal %q", here["host"], servers["host"], servers[network.Metal])
	}
}
