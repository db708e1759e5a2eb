package lab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/network/networktest"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/plugin"
	"netdelta/testbed/testbedtest"
)

// list is the name of the network of one of the lists in docs/cni, from this folder.
func list(name string) string { return network.CNIPrefix + "../../docs/cni/" + name + ".conflist" }

// TestPlugins puts the plugins that the CNI project maintains to the test of all networks.
func TestPlugins(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	for _, name := range []string{"bridge", "bridge-portmap-bandwidth", "ptp", "macvlan", "ipvlan"} {
		t.Run(name, func(t *testing.T) {
			n, err := network.ReadCNI(list(name))
			if err != nil {
				t.Fatal(err)
			}
			networktest.Run(t, lab.NewDriver(nil), n)
		})
	}
}

// needPlugins skips a test where the plugins that it calls are not installed, and says where bridge is.
func needPlugins(t *testing.T) string {
	t.Helper()
	require.Namespaces(t)
	for _, name := range []string{"bridge", "host-local"} {
		require.Need(t, "the CNI plugin "+name, plugin.Find(name, plugin.Path()) != "")
	}
	return plugin.Find("bridge", plugin.Path())
}

// TestPluginsUnderSwap: a connection lives on while plugins detach its pods and others, or the lab itself, attach them again.
func TestPluginsUnderSwap(t *testing.T) {
	needPlugins(t)
	driver := lab.NewDriver(network.Catalogue())
	tb, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "bridge", PodsOutlive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, server := testbedtest.StartPeer(t, tb.Pods()[0]), testbedtest.StartPeer(t, tb.Pods()[1])
	port, _ := server.Pod.Ports()
	if err := server.Serve("tcp", port); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{list("bridge"), list("ptp"), "routed", list("macvlan"), "bridge"} {
		if err := tb.Swap(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Exchange("tcp", tb.Endpoint(client.Pod, server.Pod, port), 1000, 5); err != nil {
			t.Fatalf("on %s: %v", name, err)
		}
	}
}

// fake makes a plugin of a shell script, and a list that names it. The script finds the verb in $CNI_COMMAND, and appends what
// it is called with to a file, whose lines calls returns.
func fake(t *testing.T, script, list string) (name string, calls func() []string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	text := fmt.Sprintf("#!/bin/sh\necho \"$CNI_COMMAND $CNI_CONTAINERID\" >>%s\nif [ $CNI_COMMAND = VERSION ]; then echo '{\"cniVersion\": \"1.0.0\", \"supportedVersions\": [\"0.4.0\", \"1.0.0\"]}'; exit; fi\n%s", log, script)
	if err := os.WriteFile(filepath.Join(dir, "fake"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "fake.conflist")
	if err := os.WriteFile(file, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(plugin.Variable, strings.Join(append([]string{dir}, plugin.Path()...), ":"))
	return network.CNIPrefix + file, func() []string {
		said, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(said)), "\n")
	}
}

const fakeList = `{"cniVersion": "1.0.0", "name": "fake", "plugins": [{"type": "fake"}]}`

// states are the folders in which plugins of this user's labs keep what they know.
func states(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "netdelta-*", "node*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPluginThatFails: what the plugin says is shown, the pods that it attached are detached, and nothing is left.
func TestPluginThatFails(t *testing.T) {
	require.Namespaces(t)
	for _, c := range []struct{ name, script, want string }{
		{"with an error", `echo '{"code": 100, "msg": "out of cake", "details": "ask the baker"}'; exit 1`, "out of cake; ask the baker"},
		{"without a word", `exit 3`, "fake failed (exit status 3)"},
		{"with garbage", `echo 'Segmentation fault'; echo gone >&2; exit 1`, `it printed "Segmentation fault"; "gone"`},
		{"after success", `echo '<html>'; exit 0`, `"<html>"`},
		{"with nothing", `exit 0`, `printed what is no result`},
		{"of another version", `echo '{"cniVersion": "9.0.0"}'`, "9.0.0"},
		{"without an address", `echo '{"cniVersion": "1.0.0", "ips": []}'`, "gave the pod no address"},
		{"without a device", `echo '{"cniVersion": "1.0.0", "ips": [{"address": "198.19.0.10/24"}]}'`, "there is no device eth0"},
		{"for want of a module", `echo '{"code": 999, "msg": "failed to create ipvlan: operation not supported"}'; exit 1`, "is unsupported: needs what its plugins ask of the kernel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := states(t)
			name, calls := fake(t, c.script, fakeList)
			_, err := lab.NewDriver(nil).Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: name})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v\nwant %s", err, c.want)
			}
			if strings.HasPrefix(c.name, "for want") != errors.Is(err, testbed.ErrUnsupported) {
				t.Errorf("unsupported: %v", err)
			}
			if got, want := calls(), []string{"VERSION ", "ADD pod0", "DEL pod0"}; !slices.Equal(trimmed(got), trimmed(want)) {
				t.Errorf("the plugin was called %q, want %q", got, want)
			}
			if after := states(t); !slices.Equal(after, before) {
				t.Errorf("left behind: %q, before %q", after, before)
			}
		})
	}
}

func trimmed(lines []string) []string {
	var all []string
	for _, l := range lines {
		// The specification leaves open what else VERSION is called with.
		if verb, _, _ := strings.Cut(l, " "); verb == "VERSION" {
			l = verb
		}
		all = append(all, l)
	}
	return all
}

// TestPluginThatFailsLater: of two plugins in a chain the second fails for the second pod. Both are told to detach both pods, and
// what the first one made is gone with its namespaces.
func TestPluginThatFailsLater(t *testing.T) {
	bridge := needPlugins(t)
	for _, c := range []struct {
		name, script string
		calls        []string
	}{
		{
			"in ADD", `[ $CNI_COMMAND-$CNI_CONTAINERID = ADD-pod1 ] && { echo '{"code": 11, "msg": "try again"}'; exit 1; }`,
			[]string{"VERSION", "ADD pod0", "ADD pod1", "DEL pod1", "DEL pod0"},
		},
		{
			"in CHECK", `[ $CNI_COMMAND-$CNI_CONTAINERID = CHECK-pod1 ] && { echo '{"code": 11, "msg": "try again"}'; exit 1; }`,
			[]string{"VERSION", "ADD pod0", "ADD pod1", "CHECK pod0", "CHECK pod1", "DEL pod1", "DEL pod0"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := states(t)
			script := c.script + "\n" + `[ $CNI_COMMAND = ADD ] && sed -n 's/.*"prevResult":\({.*}\),"type".*/\1/p'` + "\nexit 0"
			chain := `{"cniVersion": "1.0.0", "name": "chain", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
				"ipam": {"type": "host-local", "subnet": "{{.PodCIDR}}"}}, {"type": "fake"}]}`
			name, calls := fake(t, script, chain)
			_, err := lab.NewDriver(nil).Open(t.Context(), testbed.Spec{Nodes: 1, PodsPerNode: 2, Network: name})
			if err == nil || !strings.Contains(err.Error(), "try again") {
				t.Errorf("with %s: got error %v", bridge, err)
			}
			if got := trimmed(calls()); !slices.Equal(got, c.calls) {
				t.Errorf("the plugin was called %q, want %q", got, c.calls)
			}
			if after := states(t); !slices.Equal(after, before) {
				t.Errorf("left behind: %q, before %q", after, before)
			}
		})
	}
}

// TestPluginThatHangs: when its caller stops waiting, a plugin is killed with all processes that it has started.
func TestPluginThatHangs(t *testing.T) {
	require.Namespaces(t)
	name, _ := fake(t, "[ $CNI_COMMAND = DEL ] && exit 0\nsleep 1000 & sleep 1000", fakeList)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	_, err := lab.NewDriver(nil).Open(ctx, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: name})
	if err == nil || !strings.Contains(err.Error(), "the plugin fake") || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("got error %v", err)
	}
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestLearnedAddress: a plugin that takes no wishes gives addresses of its own choice. Pods that come with the network have
// them, such as outlive it can't.
func TestLearnedAddress(t *testing.T) {
	bridge := needPlugins(t)
	chain := `{"cniVersion": "1.0.0", "name": "own-will", "plugins": [{"type": "fake", "bridge": "cni0", "isGateway": true,
		"ipam": {"type": "host-local", "subnet": "{{.PodCIDR}}", "rangeStart": "198.19.{{.NodeNumber}}.77", "routes": [{"dst": "{{.DefaultRoute}}"}]}}]}`
	name, _ := fake(t, "unset CNI_ARGS\nexec "+bridge, chain)
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: name}
	driver := lab.NewDriver(nil)
	tb, err := driver.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"198.19.0.77", "198.19.1.77"} {
		if got := tb.Pods()[i].Address().String(); got != want {
			t.Errorf("pod %d has %s, want %s", i, got, want)
		}
	}
	client, server := testbedtest.StartPeer(t, tb.Pods()[0]), testbedtest.StartPeer(t, tb.Pods()[1])
	port, _ := server.Pod.Ports()
	if err := server.Serve("udp", port); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Exchange("udp", tb.Endpoint(client.Pod, server.Pod, port), 100, 5); err != nil {
		t.Error(err)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	spec.PodsOutlive = true
	if _, err := driver.Open(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "198.19.0.77") || !strings.Contains(err.Error(), "198.19.0.10") {
		t.Errorf("pods that outlive their network: got error %v", err)
	}
}

// TestMissingPlugin: a plugin that is not installed is named, with the folders that were searched and what to do.
func TestMissingPlugin(t *testing.T) {
	require.Namespaces(t)
	t.Setenv(plugin.Variable, t.TempDir())
	err := lab.NewDriver(nil).Supports(t.Context(), testbed.Spec{Network: list("ptp")})
	var lacks *testbed.UnsupportedError
	if !errors.As(err, &lacks) || !strings.Contains(lacks.Need, "the CNI plugin ptp (looked for in /") || !strings.Contains(lacks.Fix, plugin.Variable) {
		t.Errorf("got error %v", err)
	}
}

// TestPluginsKeepState: what a plugin writes where plugins keep state is there when it is called again, but neither on the other
// node nor on this machine.
func TestPluginsKeepState(t *testing.T) {
	needPlugins(t)
	script := `for dir in /run /var/lib/cni; do
	case $CNI_COMMAND in
	ADD) [ -e $dir/netdelta-mark ] && { echo '{"code": 100, "msg": "another node was here"}'; exit 1; }
		echo >$dir/netdelta-mark ;;
	CHECK | DEL) [ -e $dir/netdelta-mark ] || { echo '{"code": 101, "msg": "what was kept is gone"}'; exit 1; } ;;
	esac
done
[ -d /sys/class/net/eth0 ] && [ -d /sys/class/net/cni0 ] || { echo '{"code": 102, "msg": "/sys is not that of the node"}'; exit 1; }
[ $CNI_COMMAND = ADD ] && sed -n 's/.*"prevResult":\({.*}\),"type".*/\1/p'
exit 0`
	chain := `{"cniVersion": "1.0.0", "name": "chain", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true,
		"ipam": {"type": "host-local", "subnet": "{{.PodCIDR}}"}}, {"type": "fake"}]}`
	name, _ := fake(t, script, chain)
	tb, err := lab.NewDriver(nil).Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"/run", "/var/lib/cni", "/var/lib"} {
		if _, err := os.Stat(filepath.Join(dir, "netdelta-mark")); err == nil {
			t.Errorf("the plugin has written to %s of this machine", dir)
		}
	}
}
