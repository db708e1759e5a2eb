package lab_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"netdelta/internal/owner"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

func TestMain(m *testing.M) {
	os.Exit(testbedtest.MainWithPeers(m, map[string]func() int{"leave": leave, "churn": churn, "reach": reach, "programs": programs}))
}

// supported lists the networks that this kernel has for a version of IP.
func supported(ctx context.Context, d *lab.Driver, family result.Family) ([]string, error) {
	var names []string
	for _, n := range network.Catalogue() {
		err := d.Supports(ctx, testbed.Spec{Network: n.Name, Family: family})
		if err != nil && !errors.Is(err, testbed.ErrUnsupported) {
			return nil, err
		}
		if err == nil {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// say ends a role with a message to the test.
func say(err error) int {
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// leave is a run that waits to be killed with processes in its lab that won't end by themselves. It tells the numbers of
// the processes.
func leave() int {
	return say(func() error {
		dir, err := owner.TempDir()
		if err != nil {
			return err
		}
		ctx := context.Background()
		tb, err := lab.NewDriver(network.Catalogue()).Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: "bridge"})
		if err != nil {
			return err
		}
		var peers []*testbedtest.Peer
		for _, pod := range tb.Pods() {
			p, err := testbedtest.NewPeer(ctx, pod)
			if err != nil {
				return err
			}
			peers = append(peers, p)
		}
		if err := errors.Join(peers[1].IgnoreEOF(), peers[2].IgnoreEOF(), peers[2].Suspend()); err != nil {
			return err
		}
		daemon, err := peers[3].Fork(600)
		if err != nil {
			return err
		}
		fmt.Println(dir, peers[0].PID(), peers[1].PID(), peers[2].PID(), daemon)
		select {}
	}())
}

// churn builds, uses, swaps and closes labs until it is killed.
func churn() int {
	return say(func() error {
		ctx := context.Background()
		driver := lab.NewDriver(network.Catalogue())
		names := map[result.Family][]string{}
		var families []result.Family
		for _, family := range []result.Family{result.IPv4, result.IPv6} {
			of, err := supported(ctx, driver, family)
			if err != nil {
				return err
			}
			if len(of) > 0 {
				names[family], families = of, append(families, family)
			}
		}
		fmt.Println("ready")
		for {
			family := families[rand.IntN(len(families))]
			pick := func() string { return names[family][rand.IntN(len(names[family]))] }
			spec := testbed.Spec{Nodes: 2, PodsPerNode: 2, Family: family, Network: pick(), PodsOutlive: true}
			tb, err := driver.Open(ctx, spec)
			if err != nil {
				return err
			}
			for _, pod := range tb.Pods() {
				p, err := testbedtest.NewPeer(ctx, pod)
				if err != nil {
					return err
				}
				if err := p.IgnoreEOF(); err != nil {
					return err
				}
			}
			if err := tb.Swap(ctx, pick()); err != nil {
				return err
			}
			if err := tb.Close(); err != nil {
				return err
			}
		}
	}())
}

// reach opens each supported network and carries a few bytes over it, under each version of IP.
func reach() int {
	return say(func() error {
		ctx := context.Background()
		driver := lab.NewDriver(network.Catalogue())
		for _, family := range []result.Family{result.IPv4, result.IPv6} {
			names, err := supported(ctx, driver, family)
			if err != nil {
				return err
			}
			for _, name := range names {
				tb, err := driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 1, Family: family, Network: name})
				if err != nil {
					return err
				}
				if err := errors.Join(carry(ctx, tb), tb.Close()); err != nil {
					return fmt.Errorf("network %s, %s: %w", name, family, err)
				}
			}
			fmt.Println(len(names), "networks with", family)
		}
		return nil
	}())
}

// carry takes a few bytes from the first pod to the last and back.
func carry(ctx context.Context, tb testbed.Testbed) error {
	pods := tb.Pods()
	client, err := testbedtest.NewPeer(ctx, pods[0])
	if err != nil {
		return err
	}
	defer client.Close()
	server, err := testbedtest.NewPeer(ctx, pods[len(pods)-1])
	if err != nil {
		return err
	}
	defer server.Close()
	port, _ := server.Pod.Ports()
	if err := server.Serve("tcp", port); err != nil {
		return err
	}
	_, err = client.Exchange("tcp", tb.Endpoint(client.Pod, server.Pod, port), 100, 3)
	return err
}
