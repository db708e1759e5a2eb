package joined_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/testbed/joined"
	"netdelta/testbed/testbedtest"
)

func TestMain(m *testing.M) { os.Exit(testbedtest.Main(m, map[string]func() int{"machine": machine})) }

// machine serves a machine on standard input and output.
func machine() int {
	// Its network cards are listed when it begins: the first byte says that all are there.
	if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil {
		return 1
	}
	if err := joined.Serve(context.Background(), stdio{os.Stdin, os.Stdout}, network.Catalogue()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// stdio joins the ends of two pipes.
type stdio struct {
	io.ReadCloser
	io.WriteCloser
}

func (s stdio) Close() error { return errors.Join(s.ReadCloser.Close(), s.WriteCloser.Close()) }

// wiresOfSpaces is how many wires are between the machines of spaces.
const wiresOfSpaces = 4

// spaces starts two machines that are processes in network namespaces, with as many wires between them as the suite has testbeds at once.
func spaces(t *testing.T) *joined.Driver {
	t.Helper()
	require.Namespaces(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	nodes, inside, pipes := make([]joined.Node, 2), make([]*netns.Namespace, 2), make([]stdio, 2)
	for n := range nodes {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), testbedtest.Role("machine"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
		cmd.Stderr = os.Stderr
		in, out := require.Pipes(t, cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = in.Close() // the machine's connection has closed it already
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
		pipes[n] = stdio{out, in}
		if inside[n], err = netns.Of(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		defer inside[n].Close()
	}
	for w := range wiresOfSpaces {
		ends := make([]net.HardwareAddr, 2)
		for n := range nodes {
			ends[n] = net.HardwareAddr{0x52, 0x54, 0, 0, byte(n), byte(w + 1)}
			nodes[n].Wires = append(nodes[n].Wires, []string{ends[n].String()})
		}
		err := inside[1].WithFD(func(other int) error {
			return inside[0].Do(func() error {
				return netlink.LinkAdd(&netlink.Veth{
					LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("wire%d", w), HardwareAddr: ends[0], MTU: mtu},
					PeerName:  fmt.Sprintf("wire%d", w), PeerHardwareAddr: ends[1], PeerNamespace: netlink.NsFd(other), PeerMTU: mtu,
				})
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range nodes {
		if _, err := pipes[n].Write([]byte{0}); err != nil {
			t.Fatal(err)
		}
		var err error
		if nodes[n].Machine, err = joined.Connect(t.Context(), pipes[n]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nodes[n].Machine.Close() })
	}
	return joined.NewDriver("joined", network.Catalogue(), nodes)
}

// TestTestbed: testbeds whose nodes are machines pass the suite of all testbeds.
func TestTestbed(t *testing.T) {
	testbedtest.Run(t, testbedtest.Suite{
		Driver: spaces(t), Networks: []string{"routed", "bridge", "vxlan", "macvlan"},
		ReachByPod: func(string) bool { return true },
	})
}
