package why

import (
	"bytes"
	"path/filepath"
	"testing"

	"netdelta/insight/cause"
	"netdelta/internal/golden"
	"netdelta/internal/require"
	"netdelta/probe/evidence"
	"netdelta/report/ui"
	"netdelta/result"
)

// answer is an answer with findings of each kind.
func answer() Answer {
	visit := evidence.Visit{
		Counters: map[string]evidence.Counters{"pod0": {"Tcp.RetransSegs": 40}},
		Drops:    []evidence.Drop{{Space: "node1", Device: "eth0", Reason: "NETFILTER_DROP", Packets: 9}},
	}
	a := Answer{
		Path: evidence.Path{
			Network: "vxlan", Transactions: 9000, Visits: []evidence.Visit{visit, visit}, Failed: "burst not over after 5s",
			Ends: []evidence.Difference{{Place: "node0", Other: "node1", ConfigChange: result.ConfigChange{Device: "eth0", Setting: "mtu", Was: "1500", Is: "1400"}}},
		},
		Healthy: evidence.Path{Network: "host", Transactions: 12000},
		Notes:   []string{"reasons of dropped packets: needs root"},
	}
	a.Findings = cause.Find(a.Path, a.Healthy, cause.Symptoms())
	return a
}

func TestText(t *testing.T) {
	healthy := Answer{Path: evidence.Path{Network: "vxlan", Transactions: 9000}, Healthy: evidence.Path{Network: "host", Transactions: 12000}}
	for name, a := range map[string]Answer{"found": answer(), "healthy": healthy} {
		var out bytes.Buffer
		require.NoError(t, WriteText(&out, a, ui.Terminal{Width: 80, Unicode: true}))
		golden.Check(t, filepath.Join("testdata", name+".txt"), out.String())
	}
}
