package nsmonitor

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"netdelta/internal/netns"
	"netdelta/internal/require"
)

// What somebody adds to a machine's network is named; what leads to a pod is not.
func TestStanding(t *testing.T) {
	require.Namespaces(t)
	iptables := require.Tool(t, "iptables")
	read := func(ns *netns.Namespace) (names []string) {
		t.Helper()
		if err := ns.Do(func() (err error) { names, err = Standing([]string{"net.ipv4.ip_forward"}); return err }); err != nil {
			t.Fatal(err)
		}
		return names
	}
	var all []*netns.Namespace
	for range 2 {
		ns, err := netns.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := ns.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, ns)
	}
	node := all[0]
	run := func(ns *netns.Namespace, words ...string) {
		t.Helper()
		err := ns.Do(func() error {
			if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", strings.Join(words, " "), err, out)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	run(node, "ip", "link", "set", "lo", "up")
	before := read(node)
	err := all[1].WithFD(func(fd int) error {
		return node.Do(func() error {
			pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "cali1"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(fd)}
			return netlink.LinkAdd(pair)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"ip link set cali1 up", "ip route add 10.1.0.2/32 dev cali1", "ip -6 route add fd00::2/128 dev cali1 metric 7", "tc qdisc add dev cali1 clsact", "ip link add cni0 type bridge",
		iptables + " -t nat -N KUBE-SVC-ERIFXISQEP7F7OF4", iptables + " -t nat -N CNI-0a1b2c3d",
	} {
		run(node, strings.Fields(command)...)
	}
	pods := read(node)
	for _, command := range []string{
		"ip link add flannel.1 mtu 1450 type vxlan id 1 dstport 8472", "ip link set flannel.1 up", "ip route add 10.2.0.0/16 dev flannel.1", "ip rule add pref 77 lookup 77",
		"tc qdisc add dev flannel.1 clsact",
		iptables + " -t nat -N FLANNEL-POSTRTG", iptables + " -t nat -N KUBE-SVC-7FMLJFZ2VS6RNNBK", "sysctl -q -w net.ipv4.ip_forward=1",
	} {
		run(node, strings.Fields(command)...)
	}
	run(node, "tc", "filter", "add", "dev", "flannel.1", "ingress", "bpf", "bytecode", "1,6 0 0 0,")
	after := read(node)
	added := func(from, to []string) []string {
		return slices.DeleteFunc(slices.Clone(to), func(name string) bool { return slices.Contains(from, name) })
	}
	if got, want := added(before, pods), []string{"chains CNI of table nat", "chains KUBE-SVC of table nat"}; !slices.Equal(got, want) {
		t.Errorf("pods add %q, want %q", got, want)
	}
	if got, want := added(pods, after), []string{
		"chains FLANNEL-POSTRTG of table nat", "device flannel.1 with MTU 1450", "filters ingress on flannel.1", "net.ipv4.ip_forward = 1",
		"queueing discipline clsact on flannel.1", "route 10.2.0.0/16 dev flannel.1", "routing rule 77",
	}; !slices.Equal(got, want) {
		t.Errorf("a plugin adds %q, want %q", got, want)
	}
	if gone := added(after, pods); !slices.Equal(gone, []string{"net.ipv4.ip_forward = 0"}) {
		t.Errorf("gone are %q", gone)
	}
}
