package experiment_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/insight"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
)

// withoutOffloads switches segmentation and its reverse off at a pod's device.
func withoutOffloads(tb testbed.Testbed, pod testbed.Pod) error {
	return tb.Instruments().Within(pod.Name(), func(fd int) error {
		return netns.Within(fd, func() error {
			e, err := nsmonitor.OpenEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			for _, command := range []uint32{unix.ETHTOOL_STSO, unix.ETHTOOL_SGSO, unix.ETHTOOL_SGRO} {
				if _, err := e.Value("eth0", command, 0); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Offloads that somebody switches off in the middle of a build are named with their device and round; what was measured after
// that enters no delta, and nothing is said of the other networks and builds.
func TestReconfigurationIsNamed(t *testing.T) {
	require.Namespaces(t)
	c, run := struck(t, 20, func(tb testbed.Testbed) <-chan error {
		planted := make(chan error, 1)
		planted <- withoutOffloads(tb, tb.Pods()[0])
		return planted
	})
	for _, check := range namedOfVXLAN(t, run, insight.CheckConfig) {
		for _, want := range []string{"pod0/eth0: tx-generic-segmentation was on and is off (between rounds", "pod0/eth0: tx-tcp-segmentation was on and is off"} {
			if !strings.Contains(check.Observed, want) {
				t.Errorf("%q does not say %q", check.Observed, want)
			}
		}
	}
	for _, tr := range journal(t, c) {
		marked := 0
		for i, reason := range tr.Bursts.Disturbed {
			if reason != result.Reconfigured {
				continue
			}
			marked++
			if change := tr.Changes[0]; tr.Bursts.Round[i] < change.Before || change.After != change.Before-1 {
				t.Errorf("%s: the burst of round %d is marked, with a change between %d and %d", tr.ID(), tr.Bursts.Round[i], change.After, change.Before)
			}
		}
		if planted := strings.HasPrefix(tr.Cell, "vxlan/") && tr.Build == 1; planted != (marked > 5) || planted != (len(tr.Changes) > 0) {
			t.Errorf("%s has %d changes and %d bursts marked for them", tr.ID(), len(tr.Changes), marked)
		}
	}
}
