package path_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
	"netdelta/unit"
)

// giveUpRaw becomes a program that can never have CAP_NET_RAW.
func giveUpRaw() int {
	runtime.LockOSThread() // what a thread gives up is its own, and its program's when it becomes another
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_NET_RAW, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(unix.Exec("/proc/self/exe", []string{"prove"}, []string{testbedtest.Role("prove")}))
	return 1
}

// prove proves a path and prints the proof.
func prove() int {
	ctx := context.Background()
	err := func() error {
		tb, err := lab.NewDriver(network.Catalogue()).Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "vxlan"})
		if err != nil {
			return err
		}
		defer tb.Close()
		o, pods := tb.Instruments().Observer, tb.Pods()
		client, err := testbedtest.NewPeer(ctx, pods[0])
		if err != nil {
			return err
		}
		server, err := testbedtest.NewPeer(ctx, pods[1])
		if err != nil {
			return err
		}
		port, _ := pods[1].Ports()
		if err := server.Serve("udp", port); err != nil {
			return err
		}
		at := tb.Endpoint(pods[0], pods[1], port)
		p := path.NewPlannedProver(o)
		for range 2 {
			proof, err := p.Prove(ctx, pods[0], pods[1], network.TCP, func(context.Context) (path.Load, error) {
				const size, count = 1000, 20
				_, err := client.Exchange("udp", at, size, count)
				return path.Load{Protocol: network.UDP, Server: at, Requests: size * count, Responses: size * count, Message: unit.Bytes(size)}, err
			})
			if err != nil {
				return err
			}
			fmt.Printf("ok %v, overhead %d, weak %q, findings %q\n", proof.OK, proof.Overhead, proof.Weak, proof.Findings)
		}
		return nil
	}()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// Without the right to see packets, the counters alone prove the path, and the proof says so.
func TestWithoutRaw(t *testing.T) {
	require.Namespaces(t)
	require.Need(t, "root, in order to give a capability up", os.Geteuid() == 0)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{testbedtest.Role("give-up-raw")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const want = `ok true, overhead 50, weak ["no packet sample: needs CAP_NET_RAW" "path MTU not tried: needs a packet sample"], findings []`
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(lines, []string{want, want}) {
		t.Errorf("got\n%s\nwant twice\n%s", out, want)
	}
}
