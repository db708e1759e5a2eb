package kube

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
)

// policed is a testbed whose server policies guard.
func policed(rules, pods int) testbed.Spec {
	return testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: Pod, Conditions: result.Conditions{
		Policy: result.PolicyKubernetes, PolicyRules: rules, PolicyPods: pods,
	}}
}

// TestPoliciesOnCluster: policies admit only the client, there are as many as were asked for, and closing the testbed deletes them.
// Without an engine the error is an UnsupportedError that names them.
func TestPoliciesOnCluster(t *testing.T) {
	t.Parallel() // no other test has policies
	c := connect(t, "restricted")
	d := newDriver(t, c, Options{Ports: 4})
	err := d.Supports(t.Context(), policed(1, 0))
	if errors.Is(err, testbed.ErrUnsupported) {
		t.Log(err)
		switchPolicy(t)
		d = newDriver(t, c, Options{Ports: 4})
		err = d.Supports(t.Context(), policed(1, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	tb := openBed(t, d, policed(7, 2))
	var all errgroup.Group
	for _, p := range tb.(*Testbed).pods {
		all.Go(func() error { _, err := p.ensure(t.Context()); return err })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	list := func(selector string) int {
		l, err := c.API.NetworkPolicies(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Items)
	}
	if n := list(d.Run().Selector()); n != 7 {
		t.Errorf("there are %d policies, want 7", n)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	if n := list(d.Run().Selector()); n != 0 {
		t.Errorf("%d policies outlive their testbed", n)
	}

	t.Run("target", func(t *testing.T) { turns(t, d) })

	t.Run("denied by others", func(t *testing.T) {
		policies := c.API.NetworkPolicies(c.Namespace)
		deny := policy(t, "default-deny", "{podSelector: {}, policyTypes: [Ingress]}")
		deny.Namespace = c.Namespace
		if _, err := policies.Create(t.Context(), deny, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := policies.Delete(context.Background(), "default-deny", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}()
		closed := openBed(t, d, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: Pod})
		var all errgroup.Group
		for _, p := range closed.(*Testbed).pods {
			all.Go(func() error { _, err := p.ensure(t.Context()); return err })
		}
		err := all.Wait()
		if broken, is := errors.AsType[*testbed.BrokenError](err); !is || !strings.Contains(broken.Says, "default-deny in namespace "+c.Namespace+" (ingress)") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("killed", func(t *testing.T) {
		killed, err := NewDriver(c, streamed(t, Options{Ports: 4}))
		if err != nil {
			t.Fatal(err)
		}
		left, err := killed.Open(t.Context(), policed(3, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := left.(*Testbed).police(t.Context()); err != nil {
			t.Fatal(err)
		}
		// What looks for runs under way would wait for its lease to grow old.
		if err := killed.lease.release(t.Context()); err != nil {
			t.Fatal(err)
		}
		removed, err := Sweep(t.Context(), c)
		if err != nil || len(removed) < 3 || list(killed.Run().Selector()) != 0 {
			t.Errorf("of a killed run %q were removed, %v", removed, err)
		}
	})
}

// switchPolicy has the cluster of make cluster-up enforce policies until the test ends.
func switchPolicy(t *testing.T) {
	t.Helper()
	change := func(engine string) error {
		cmd := exec.Command("go", "run", "netdelta/extras/cluster", "switch", "--policy", engine)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("switch the policy engine: %w: %s", err, out)
		}
		return nil
	}
	err := change("kube-network-policies")
	require.Need(t, fmt.Sprintf("a cluster with a policy engine, or the cluster of make cluster-up (%v)", err), err == nil)
	t.Cleanup(func() {
		if err := change("none"); err != nil {
			t.Error(err)
		}
	})
}

// turns sees a target closed and opened.
func turns(t *testing.T, d *Driver) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	g, err := d.OpenPolicyTarget(ctx, 5, 4*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, c := range []struct {
		open   bool
		change func(context.Context) error
	}{{true, nil}, {false, g.Shut}, {true, g.Lift}} {
		before, err := g.Clock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			if err := c.change(ctx); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case turn := <-g.Turns():
			if turn.Open != c.open || turn.Since <= turn.Before || i > 0 && turn.Since < before.Received {
				t.Errorf("turn %d is %+v", i, turn)
			}
		case <-g.Lost():
			t.Fatal("the watch ended")
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}
