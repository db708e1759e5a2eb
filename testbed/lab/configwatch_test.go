package lab_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/nsmonitor"
)

// What changes under a lab is named, with its device, and with its time where the kernel tells of it.
func TestWatchConfig(t *testing.T) {
	tb := opened(t, testbed.Spec{Network: "bridge"})
	link := func(name string, f func(netlink.Link) error) func() error {
		return func() error {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return f(l)
		}
	}
	changes := []struct {
		name, space string
		plant       func() error
		device      string
		setting     string // its beginning
		timed       bool
	}{
		{"features", "pod0", func() error {
			e, err := nsmonitor.OpenEthtool()
			if err != nil {
				return err
			}
			defer e.Close()
			_, err = e.Value("eth0", unix.ETHTOOL_SGSO, 0)
			return err
		}, "pod0/eth0", "tx-generic-segmentation", true},
		{"mtu", "pod0", link("eth0", func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1300) }), "pod0/eth0", "mtu", true},
		{"qdisc", "node0", link("eth0", func(l netlink.Link) error {
			return netlink.QdiscReplace(&netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: 1 << 16, Parent: netlink.HANDLE_ROOT}, QdiscType: "pfifo"})
		}), "node0/eth0", "qdisc root", true},
		{"route", "pod0", link("eth0", func(l netlink.Link) error {
			return netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: netlink.NewIPNet([]byte{203, 0, 113, 9})})
		}), "pod0", "route 203.0.113.9/32", true},
		{"rules", "node1", func() error {
			c, err := nftables.New()
			if err != nil {
				return err
			}
			c.AddTable(&nftables.Table{Name: "planted", Family: nftables.TableFamilyINet})
			return c.Flush()
		}, "node1", "firewall", true},
		{"xdp", "node0", link("eth0", func(l netlink.Link) error {
			p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
			if err != nil {
				return err
			}
			defer p.Close()
			const generic = 1 << 1
			return netlink.LinkSetXdpFdWithFlags(l, p.FD(), generic)
		}), "node0/eth0", "xdp program", true},
		{"sysctl", "pod0", func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_sack", []byte("0"), 0) }, "pod0", "net.ipv4.tcp_sack", false},
	}
	watch, err := tb.WatchConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := watch.Close(); err != nil {
			t.Error(err)
		}
	}()
	if found, err := watch.End(); err != nil || len(found) > 0 {
		t.Fatalf("of a lab that was left alone: %v, %v", found, err)
	}
	for _, c := range changes {
		before := time.Now()
		if err := tb.Within(c.space, func(fd int) error { return netns.Within(fd, c.plant) }); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.timed {
			time.Sleep(200 * time.Millisecond) // another goroutine reads the kernel's notice; the watch does not report when
		}
		found, err := watch.End()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(found, func(f result.ConfigChange) bool {
			return f.Device == c.device && strings.HasPrefix(f.Setting, c.setting)
		})
		if i < 0 {
			t.Errorf("%s: not named in %s", c.name, text(found))
			continue
		}
		if f := found[i]; f.Was == f.Is || c.timed == f.At.IsZero() || c.timed && (f.At.Before(before) || f.At.After(time.Now())) {
			t.Errorf("%s: got %s", c.name, text(found[i:i+1]))
		}
	}
}

func text(all []result.ConfigChange) string {
	var lines []string
	for _, c := range all {
		lines = append(lines, fmt.Sprintf("%s %s: %s -> %s at %s", c.Device, c.Setting, c.Was, c.Is, c.At.Format(time.TimeOnly)))
	}
	return strings.Join(lines, "\n")
}

// Nothing that a lab does by itself counts as a change.
func TestWatchConfigOfQuietLabs(t *testing.T) {
	for _, n := range []string{"bridge-nat", "vxlan", "wireguard", "ebpf-routed", "geneve", "ovs"} {
		t.Run(n, func(t *testing.T) {
			t.Parallel()
			tb := opened(t, testbed.Spec{Network: n, Family: result.IPv6})
			watch, err := tb.WatchConfig(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			client, server := across(t, tb, "tcp")
			exchange(t, tb, client, server, "tcp", 1000, 100)
			time.Sleep(3 * time.Second) // that nothing happens
			found, err := watch.End()
			if err != nil || len(found) > 0 {
				t.Errorf("it found %s, %v", text(found), err)
			}
			if err := watch.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a build pays for being watched, in processor time: its beginning is in the background, its end is not.
func BenchmarkWatchConfig(b *testing.B) {
	tb, err := lab.NewDriver(network.Catalogue()).Open(b.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: "vxlan"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = tb.Close() }()
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var begin, end time.Duration
	for b.Loop() {
		start := spent()
		w, err := tb.Instruments().WatchConfig(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		begun := spent()
		if _, err := w.End(); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		begin, end = begin+begun-start, end+spent()-begun
	}
	b.ReportMetric(float64(begin.Microseconds())/float64(b.N), "begin-us/op")
	b.ReportMetric(float64(end.Microseconds())/float64(b.N), "end-us/op")
}

// What a queueing discipline drops is counted, with its place.
func TestDrops(t *testing.T) {
	tb := opened(t, testbed.Spec{Network: "bridge"})
	tc := require.Tool(t, "tc")
	pods := tb.Pods()
	p, err := pods[0].Start(t.Context(), testbed.Command{Path: tc, Args: strings.Fields("qdisc replace dev eth0 root pfifo limit 0")})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	_ = tb.Fit(t.Context(), pods[0], pods[len(pods)-1], 100) // the kernel may tell the sender
	drops, err := tb.Drops(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(drops, func(d result.Drop) bool { return d.Device == "pod0/eth0" && d.Queue == "pfifo" })
	if i < 0 || drops[i].Packets == 0 { // at least the request for the neighbour's address
		t.Errorf("got %+v", drops)
	}
}
