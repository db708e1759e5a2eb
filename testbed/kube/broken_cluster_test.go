package kube

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/require"
	"netdelta/testbed"
)

// TestVanishingOnCluster: where a node loses packets above a size, those of one way are named by their size and the nodes, and the way back is not.
func TestVanishingOnCluster(t *testing.T) {
	t.Parallel() // the rule is about its own pods
	d := newDriver(t, connect(t, "restricted"), Options{Ports: 4})
	tb := openBed(t, d, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: Pod}).(*Testbed)
	var all errgroup.Group
	for _, p := range tb.pods {
		all.Go(func() error { _, err := p.ensure(t.Context()); return err })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	client, server := tb.pods[0], tb.pods[1]
	const largest = 1300
	rule := []string{"FORWARD", "-s", client.Address().String(), "-d", server.Address().String(), "-m", "length", "--length", fmt.Sprintf("%d:65535", largest+1), "-j", "DROP"}
	onNode := func(do string) error {
		args := append([]string{"run", "netdelta/extras/cluster", "node", client.Node(), "iptables", do}, rule...)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("iptables %s on node %s: %w: %s", do, client.Node(), err, out)
		}
		return nil
	}
	err := onNode("-I")
	require.Need(t, fmt.Sprintf("the cluster of make cluster-up, whose nodes have iptables (%v)", err), err == nil)
	defer func() {
		if err := onNode("-D"); err != nil {
			t.Error(err)
		}
	}()
	err = tb.prove(t.Context(), client, server)
	want := fmt.Sprintf("packets above %d bytes vanish from %s to %s", largest, client.Node(), server.Node())
	if broken, is := errors.AsType[*testbed.BrokenError](err); !is || !strings.HasPrefix(broken.Says, want) || strings.Contains(broken.Says, " and ") {
		t.Errorf("got %v, want %q", err, want)
	}
}
