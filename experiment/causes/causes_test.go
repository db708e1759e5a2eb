package causes_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/experiment"
	"netdelta/experiment/causes"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/insight/cause"
	"netdelta/internal/leak"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/evidence"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

func TestMain(m *testing.M) {
	if agent.Asked() { // this test's binary is its own agent
		agent.Become(catalogue.Workloads())
	}
	probetest.GoAhead()
	os.Exit(leak.Main(m))
}

// findings are what is found on routed against host with a fault planted on routed, for a workload.
func findings(t *testing.T, workload string, built func(testbed.Testbed) error) (all []cause.Finding, path evidence.Path) {
	t.Helper()
	require.Namespaces(t)
	networks := []string{"host", "routed"}
	s := &study.Study{
		Name: "why", Testbed: study.Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: study.Link{MTU: 1500}},
		Baseline: networks[0], Networks: networks, Placement: []result.Placement{result.CrossNode}, Workloads: []study.Workload{{Name: workload}},
		Design: study.Design{Burst: 5 * time.Millisecond, Builds: 3, Confidence: 0.95, Margin: 0.02, TimeBudget: time.Minute, Seed: 1},
	}
	driver := lab.NewDriver(network.Catalogue())
	p, err := experiment.Prepare(t.Context(), s, driver, catalogue.Workloads())
	require.NoError(t, err)
	config, err := experiment.Assemble(t.Context(), s, p, driver, catalogue.Workloads())
	require.NoError(t, err)
	defer func() {
		require.NoError(t, errors.Join(config.Kernel.Close(), config.Machine.Close()))
	}()
	cells := slices.DeleteFunc(plan.Measured(p.Cells), func(c result.Cell) bool { return c.Role == result.RoleControl })
	paths, notes, err := causes.Read(t.Context(), causes.Config{
		Experiment: config, Cells: cells, Lasting: 2 * time.Second,
		Built: func(c result.Cell, tb testbed.Testbed) error {
			if c.Network == "host" || built == nil {
				return nil
			}
			return built(tb)
		},
	})
	require.NoError(t, err)
	require.Need(t, "reasons of dropped packets: "+strings.Join(notes, "; "), len(notes) == 0)
	i := slices.IndexFunc(paths, func(p evidence.Path) bool { return p.Network == "routed" })
	return cause.Find(paths[i], paths[1-i], cause.Symptoms()), paths[i]
}

// in runs a command of a shell in a network namespace of a testbed.
func in(space, command string) func(testbed.Testbed) error {
	return func(tb testbed.Testbed) error {
		return tb.Instruments().Within(space, func(fd int) error {
			return netns.Within(fd, func() error {
				if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
					return fmt.Errorf("%s: %w: %s", command, err, out)
				}
				return nil
			})
		})
	}
}

// Faults that are planted are found: the family, in the first two findings, and the place.
func TestPlantsAreFound(t *testing.T) {
	for _, plant := range []struct{ name, workload, space, command, family, at string }{
		{
			"a rule that drops", "tcp-rr", "node1",
			"nft add table inet planted; nft add chain inet planted c '{ type filter hook forward priority 0; }'; nft add rule inet planted c numgen random mod 100 0 drop",
			"policy", "node1",
		},
		{
			"loss at a device", "tcp-stream", "node0",
			"nft add table netdev planted; nft add chain netdev planted c '{ type filter hook ingress device eth0 priority 0; }'; nft add rule netdev planted c numgen random mod 40 0 drop",
			"policy", "node0",
		},
		{"a shaper", "tcp-stream", "node0", "tc qdisc add dev eth0 root tbf rate 200mbit burst 5k limit 6000", "queue", "node0 eth0"},
		{"one side's segments", "tcp-stream", "node1", "ip link set dev eth0 gso_max_segs 1", "settings", "node1"},
		{"one side's MTU", "tcp-rr", "node1", "ip link set dev eth0 mtu 1400", "settings", "node1"},
		{"one side's SACK", "tcp-stream", "pod2", "sysctl -qw net.ipv4.tcp_sack=0", "settings", "pod2"},
	} {
		t.Run(plant.name, func(t *testing.T) {
			all, path := findings(t, plant.workload, in(plant.space, plant.command))
			for _, f := range all[:min(2, len(all))] {
				at := slices.ContainsFunc(f.Evidence, func(e cause.Evidence) bool { return strings.HasPrefix(e.Where, plant.at) }) ||
					slices.ContainsFunc(f.Differs, func(d evidence.Difference) bool { return d.Place == plant.at || d.Other == plant.at })
				if f.Symptom.Family == plant.family && at {
					return
				}
			}
			var drops []evidence.Drop
			for _, v := range path.Visits {
				drops = append(drops, v.Drops...)
			}
			for _, f := range all {
				t.Logf("found is %s: %+v %+v", f.Symptom.Name, f.Evidence, f.Differs)
			}
			t.Errorf("not found; dropped were %+v (load: %q)", drops, path.Failed)
		})
	}
}

// On a path without a fault nothing is found.
func TestHealthyPathHasNoFinding(t *testing.T) {
	for _, workload := range []string{"tcp-rr", "tcp-stream", "udp-rr", "tcp-crr"} {
		t.Run(workload, func(t *testing.T) {
			if all, _ := findings(t, workload, nil); len(all) > 0 {
				t.Errorf("found is %+v", all)
			}
		})
	}
}
