package whatif_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/inside"
	"netdelta/testbed/kube/whatif"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
	"netdelta/testbed/testbedtest"
)

// TestMain makes the test's binary what is started in pods, too.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == inside.Verb:
		end(inside.Do(os.Args[2:]))
	case len(os.Args) > 2 && os.Args[1] == server.Verb:
		end(server.Do(context.Background(), os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(testbedtest.Main(m, map[string]func() int{"controller": controller}))
}

// end ends what was started in a pod.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// baseImage is an image with a shell that the nodes of the cluster for tests have.
const baseImage = "localhost/netdelta/base:1"

// onNodes are the nodes of the tests, whose state is held against what it was.
func onNodes() []string { return []string{"w1", "w2"} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// connect gives the test a namespace of its own in the cluster, of a Pod Security level.
func connect(t *testing.T, level string) (*kube.Cluster, kube.Config) {
	t.Helper()
	config := kube.Config{Kubeconfig: require.Cluster(t)}
	c, err := kube.Connect(config)
	must(t, err)
	ns, err := c.API.Namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "what-if-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
	}}, metav1.CreateOptions{})
	must(t, err)
	c.Namespace, config.Namespace = ns.Name, ns.Name
	t.Cleanup(func() {
		if err := c.API.Namespaces.Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// Pods are refused until the namespace has its account.
	must(t, require.Await(time.Minute, "the namespace has its account", func() error {
		_, err := c.API.ServiceAccounts(ns.Name).Get(t.Context(), "default", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err
	}))
	return c, config
}

// options stream this test into the pods.
func options(log io.Writer) (whatif.Options, error) {
	self, err := os.Executable()
	return whatif.Options{Options: kube.Options{BaseImage: baseImage, Binary: self, Nodes: onNodes()}, NIC: servers.NIC{Mode: server.Macvlan}, Count: 2, Log: log}, err
}

// open makes nodes of the cluster's.
func open(t *testing.T, c *kube.Cluster, config kube.Config) *whatif.Nodes {
	t.Helper()
	o, err := options(t.Output())
	must(t, err)
	require.Need(t, "a test that is linked statically (CGO_ENABLED=0)", machine.CheckStatic(o.Binary) == nil)
	n, err := whatif.Open(t.Context(), c, config, o)
	must(t, err)
	t.Cleanup(func() { _ = n.Close(context.Background()) })
	return n
}

// ours needs the cluster of make cluster-up, whose nodes can be looked into.
func ours(t *testing.T) supervisor.Folder {
	t.Helper()
	kubeconfig := require.Cluster(t)
	folder, err := supervisor.Own()
	must(t, err)
	require.Need(t, "a cluster of this machine's (make cluster-up)", folder.Kubeconfig() == kubeconfig)
	return folder
}

// state is what of a node must be the same before and after: devices without the cluster's own pods', addresses, routes, rules, settings
// and firewall, and netdelta's processes.
func state(t *testing.T, folder supervisor.Folder, node string) string {
	t.Helper()
	pid, err := folder.NodeProcess(node)
	must(t, err)
	const look = `ip -o -d link | grep -v ': veth' | sed 's/ promiscuity [0-9]*//; s/ gc_timer *[0-9.]*//g; s/ hello_timer *[0-9.]*//g; s/ topology_change_timer *[0-9.]*//g'
ip -o addr | grep -v 'veth\|valid_lft [0-9]*sec' ; ip rule; ip route show table all | grep -v veth | sort; ip -6 route show table all | grep -v veth | sort
sysctl -a 2>/dev/null | grep '^net\.' | grep -v 'veth\|stable_secret\|nf_conntrack_count\|nf_conntrack_buckets\|use_tempaddr\|netdev_rss_key\|fib_triestat\|\.addrconf_hash'
iptables-save | grep -v '^#' | sed 's/\[[0-9:]*\]//'; nft list ruleset 2>/dev/null | grep -v 'counter packets' | wc -l
for p in /proc/[0-9]*; do tr '\0' ' ' <$p/cmdline 2>/dev/null | grep -o '/opt/netdelta/netdelta server.*{.do' ; done; true`
	out, err := exec.Command("nsenter", "-t", fmt.Sprint(pid), "-n", "-m", "-p", "sh", "-c", look).CombinedOutput()
	if err != nil {
		t.Fatalf("look at node %s: %v: %s", node, err, out)
	}
	return string(out)
}

func states(t *testing.T, folder supervisor.Folder) (all []string) {
	for _, node := range onNodes() {
		all = append(all, state(t, folder, node))
	}
	return all
}

// unchanged fails where a node is not soon what it was.
func unchanged(t *testing.T, folder supervisor.Folder, before []string, within time.Duration) {
	t.Helper()
	until := time.Now().Add(within)
	for i, node := range onNodes() {
		if err := require.Await(time.Until(until), fmt.Sprintf("node %s is what it was", node), func() error {
			was, is := strings.Split(before[i], "\n"), strings.Split(state(t, folder, node), "\n")
			gone := slices.DeleteFunc(slices.Clone(was), func(line string) bool { return slices.Contains(is, line) })
			come := slices.DeleteFunc(is, func(line string) bool { return slices.Contains(was, line) })
			if len(gone)+len(come) > 0 {
				return fmt.Errorf("it differs\n- %s\n+ %s", strings.Join(gone, "\n- "), strings.Join(come, "\n+ "))
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// left are the pods of runs that are there still.
func left(t *testing.T, c *kube.Cluster) (names []string) {
	t.Helper()
	list, err := c.API.Pods(c.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: kube.SelectAll})
	must(t, err)
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

// TestTestbedOnCluster: testbeds on the nodes of a cluster pass the suite of all testbeds, as do the nodes' own network and the
// network of the cluster's pods, and leave the nodes as they were and no pod.
func TestTestbedOnCluster(t *testing.T) {
	folder := ours(t)
	c, config := connect(t, "privileged")
	before := states(t, folder)
	n := open(t, c, config)
	t.Setenv(testbedtest.Program, n.Capabilities().Program)
	t.Run("suite", func(t *testing.T) {
		testbedtest.Run(t, testbedtest.Suite{Driver: n, Networks: []string{"routed", "vxlan"}, ReachByPod: func(string) bool { return true }, Elsewhere: true})
	})
	for _, name := range []string{network.Metal, kube.Pod} {
		spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: name}
		spec.Link.MTU = n.MTU()
		bed, err := n.Open(t.Context(), spec)
		must(t, err)
		from, to := testbedtest.StartPeer(t, bed.Pods()[0]), testbedtest.StartPeer(t, bed.Pods()[1])
		first, _ := to.Pod.Ports()
		must(t, to.Serve("udp", first))
		must(t, from.Probe(bed.Endpoint(from.Pod, to.Pod, first), 100))
		must(t, errors.Join(from.Close(), to.Close(), bed.Close()))
	}
	spec := testbed.Spec{Network: kube.Pod}
	if spec.Link.MTU = n.MTU() + 1; n.Supports(t.Context(), spec) == nil {
		t.Error("the cluster's own network is taken to have another MTU than it has")
	}
	must(t, n.Close(t.Context()))
	unchanged(t, folder, before, 20*time.Second)
	if names := left(t, c); len(names) > 0 {
		t.Errorf("pods are left: %v", names)
	}
}

// controller opens testbeds on the nodes of a cluster, says so, and waits to be killed.
func controller() int {
	err := func() error {
		config := kube.Config{Kubeconfig: os.Getenv(require.KubeconfigVariable), Namespace: os.Args[1]}
		c, err := kube.Connect(config)
		if err != nil {
			return err
		}
		o, err := options(os.Stderr)
		if err != nil {
			return err
		}
		n, err := whatif.Open(context.Background(), c, config, o)
		if err != nil {
			return err
		}
		for _, name := range []string{network.Metal, "vxlan", "ebpf-routed"} {
			if _, err := n.Open(context.Background(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: name, Link: testbed.Link{MTU: n.MTU()}}); err != nil {
				return err
			}
		}
		fmt.Println("open")
		_, err = io.Copy(io.Discard, os.Stdin)
		return err
	}()
	fmt.Fprintln(os.Stderr, "the controller of the test:", err)
	return 1
}

// TestKilledOnCluster: a controller that is killed leaves the nodes as they were at once, and pods that cleanup deletes.
func TestKilledOnCluster(t *testing.T) {
	folder := ours(t)
	c, config := connect(t, "privileged")
	before := states(t, folder)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, config.Namespace)
	cmd.Env, cmd.Stderr = append(os.Environ(), testbedtest.Role("controller")), t.Output()
	in, err := cmd.StdinPipe()
	must(t, err)
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := make([]byte, 4)
	_, err = io.ReadFull(out, said)
	if slices.Equal(states(t, folder), before) {
		t.Error("an agent on a node is not seen: this test does nothing")
	}
	must(t, errors.Join(cmd.Process.Kill(), err))
	_ = cmd.Wait() // it was killed
	unchanged(t, folder, before, 20*time.Second)
	if names := left(t, c); len(names) != 2 {
		t.Errorf("there are the pods %v, of 2 nodes", names)
	}
	removed, err := kube.Sweep(t.Context(), c)
	must(t, err)
	if names := left(t, c); len(names) > 0 || len(removed) < 2 {
		t.Errorf("cleanup removed %v, and these are left: %v", removed, names)
	}
}

// TestFaultsOnCluster: what keeps nodes from being used is named with its fix, and nothing is left.
func TestFaultsOnCluster(t *testing.T) {
	t.Run("pod security", func(t *testing.T) {
		t.Parallel()
		c, config := connect(t, "baseline")
		o, err := options(t.Output())
		must(t, err)
		refused(t, c, config, o, "--what-if", "privileged", "enforce=privileged", c.Namespace)
	})
	t.Run("no such node", func(t *testing.T) {
		t.Parallel()
		c, config := connect(t, "privileged")
		o, err := options(t.Output())
		must(t, err)
		o.Options.Nodes = []string{"w1", "w99"}
		refused(t, c, config, o, "w99", "there is no such node")
	})
	t.Run("no such card", func(t *testing.T) {
		t.Parallel()
		c, config := connect(t, "privileged")
		o, err := options(t.Output())
		must(t, err)
		o.NIC.Card = "eth7"
		refused(t, c, config, o, "w1", "w2", "no card eth7", "eth0")
	})
	t.Run("lost", func(t *testing.T) {
		t.Parallel()
		c, config := connect(t, "privileged")
		n := open(t, c, config)
		bed, err := n.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"})
		must(t, err)
		lost := left(t, c)[1]
		must(t, c.API.Pods(c.Namespace).Delete(t.Context(), lost, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
		require.Eventually(t, 20*time.Second, "the node is lost", func() bool {
			_, err = bed.Links(t.Context())
			return err != nil
		})
		if !strings.Contains(err.Error(), "node1") && !strings.Contains(err.Error(), "node0") || !strings.Contains(err.Error(), "its pod was deleted") {
			t.Errorf("the node's pod is lost, and it says: %v", err)
		}
		must(t, bed.Close())
		reachedAgain(t, c, n, "its pod was deleted")
	})
	t.Run("cut", func(t *testing.T) {
		folder := ours(t)
		c, config := connect(t, "privileged")
		n := open(t, c, config)
		bed, err := n.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"})
		must(t, err)
		pid, err := folder.NodeProcess(onNodes()[1])
		must(t, err)
		// As the API server cuts it: the stream ends, and the pod lives on.
		const kill = `for p in /proc/[0-9]*; do if tr '\0' ' ' <$p/cmdline 2>/dev/null | grep -q 'netdelta server.*{.do.*"'$0'"'; then kill -9 ${p#/proc/}; fi; done`
		out, err := exec.Command("nsenter", "-t", fmt.Sprint(pid), "-m", "-p", "sh", "-c", kill, server.Node).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		require.Eventually(t, 20*time.Second, "the node is lost", func() bool {
			_, err = bed.Links(t.Context())
			return err != nil
		})
		if !strings.Contains(err.Error(), "node1") {
			t.Errorf("the node's stream has ended, and it says: %v", err)
		}
		must(t, bed.Close())
		reachedAgain(t, c, n, "its pod still runs")
	})
}

// reachedAgain: a node that was lost is reached again for the next testbed, whose notes say why, and no pod is left.
func reachedAgain(t *testing.T, c *kube.Cluster, n *whatif.Nodes, why string) {
	t.Helper()
	bed, err := n.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"})
	must(t, err)
	_, err = bed.Links(t.Context())
	must(t, err)
	if notes := strings.Join(bed.Instruments().Notes(), "\n"); !strings.Contains(notes, "was lost") || !strings.Contains(notes, why) {
		t.Errorf("the notes are %q", notes)
	}
	must(t, errors.Join(bed.Close(), n.Close(t.Context())))
	if names := left(t, c); len(names) > 0 {
		t.Errorf("pods are left: %v", names)
	}
}

// refused fails unless nodes are refused in these words, with no pod left.
func refused(t *testing.T, c *kube.Cluster, config kube.Config, o whatif.Options, says ...string) {
	t.Helper()
	n, err := whatif.Open(t.Context(), c, config, o)
	if err == nil {
		_ = n.Close(context.Background())
		t.Fatal("it went well")
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said in: %v", want, err)
		}
	}
	if names := left(t, c); len(names) > 0 {
		t.Errorf("pods are left: %v", names)
	}
}
