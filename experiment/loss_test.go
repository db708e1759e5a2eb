package experiment_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"netdelta/insight"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// lossy is a driver that has all nodes' pods of one network drop one packet of a hundred.
type lossy struct {
	testbed.Provider
	network, nft string
}

func (o *lossy) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := o.Provider.Open(ctx, spec)
	if err != nil || spec.Network != o.network {
		return tb, err
	}
	for _, pod := range tb.Pods() {
		p, err := pod.Start(ctx, testbed.Command{Path: o.nft, Args: []string{
			"add table inet lossy; add chain inet lossy in { type filter hook input priority 0; }; add rule inet lossy in meta random < 42949673 drop",
		}})
		if err == nil {
			err = p.Wait()
		}
		if err != nil {
			return nil, err
		}
	}
	return tb, nil
}

// One packet of a hundred that a rule drops is named as loss, of request-response and of streams, with its share; nothing is said of
// the network that loses nothing.
func TestLossIsNamed(t *testing.T) {
	require.Namespaces(t)
	nft := require.Tool(t, "nft")
	for _, workload := range []string{"tcp-rr", "tcp-stream"} {
		t.Run(workload, func(t *testing.T) {
			s := small([]string{"host", "bridge", "vxlan"}, result.CrossNode)
			s.Workloads[0].Name = workload
			s.Design.Rounds, s.Design.Burst = 20, 10*time.Millisecond
			c := setUpOn(t, network.Catalogue(), s, 1, nil)
			c.Driver = &lossy{c.Driver, "vxlan", nft}
			run := mustRun(t, c)
			named := false
			for _, check := range run.Checks {
				if check.Check != insight.CheckLoss {
					continue
				}
				if !strings.HasPrefix(check.Trial, "vxlan/") {
					t.Errorf("%s is said to lose packets: %s", check.Trial, check.Observed)
					continue
				}
				named = true
				t.Log(check.Observed)
			}
			if !named {
				t.Error("the loss of vxlan is not named")
			}
		})
	}
}
