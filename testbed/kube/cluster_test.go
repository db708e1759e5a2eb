package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
)

// baseImage is an image with a shell that the nodes of the cluster for tests have.
const baseImage = "localhost/netdelta/base:1"

// connect gives the test a namespace of its own in the cluster, of a Pod Security level.
func connect(t *testing.T, level string) *Cluster {
	t.Helper()
	c, err := Connect(Config{Kubeconfig: require.Cluster(t)})
	if err != nil {
		t.Fatal(err)
	}
	ns, err := c.API.Namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "driver-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Namespace = ns.Name
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.API.Namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	// Pods are refused until the namespace has its account.
	require.NoError(t, require.Await(time.Minute, "the namespace has its account", func() error {
		_, err := c.API.ServiceAccounts(ns.Name).Get(t.Context(), "default", metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err
	}))
	return c
}

// streamed are options that stream this test into pods.
func streamed(t *testing.T, o Options) Options {
	t.Helper()
	o.BaseImage, o.Log = cmp.Or(o.BaseImage, baseImage), t.Logf
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "a test that is linked statically (CGO_ENABLED=0)", machine.CheckStatic(self) == nil)
	return o
}

// newDriver is a driver that leaves nothing behind.
func newDriver(t *testing.T, c *Cluster, o Options) *Driver {
	t.Helper()
	d, err := NewDriver(c, streamed(t, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := d.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		for _, k := range c.kinds() {
			if left, err := k.find(context.Background(), d.Run().Selector()); err != nil || len(left) > 0 {
				t.Errorf("%d objects of kind %s are left, %v", len(left), k.name, err)
			}
		}
	})
	return d
}

// openBed opens a testbed, which is closed with the test.
func openBed(t *testing.T, d *Driver, spec testbed.Spec) testbed.Testbed {
	t.Helper()
	tb, err := d.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := tb.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return tb
}

// TestBasicNetworksOnCluster: in each network the client reaches servers on its own node and across, by TCP and UDP, with all of them
// side by side.
func TestBasicNetworksOnCluster(t *testing.T) {
	t.Parallel()
	d := newDriver(t, connect(t, "privileged"), Options{Ports: 4})
	var all sync.WaitGroup
	for _, name := range []string{Host, Pod, ClusterIP, NodePort, Headless} {
		spec := testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: name}
		if err := d.Supports(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		tb := openBed(t, d, spec)
		all.Go(func() {
			if err := talk(t, tb); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	for _, n := range openBed(t, d, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: Pod}).Instruments().Notes() {
		t.Log(n)
	}
}

// talk has the first pod speak to the others, and looks at what the testbed tells.
func talk(t *testing.T, tb testbed.Testbed) error {
	pods := tb.Pods()
	peers := make([]*testbedtest.Peer, 3) // the client, and a server on each node
	errs := make([]error, len(peers))
	var starts sync.WaitGroup
	for i, p := range pods[:3] {
		starts.Go(func() { peers[i], errs[i] = testbedtest.NewPeer(t.Context(), p) })
	}
	starts.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if pods[0].Node() != pods[1].Node() || pods[0].Node() == pods[2].Node() {
		return fmt.Errorf("the pods are on the nodes %s, %s, %s", pods[0].Node(), pods[1].Node(), pods[2].Node())
	}
	for _, server := range peers[1:] {
		first, last := server.Pod.Ports()
		for _, protocol := range []string{"tcp", "udp"} {
			for _, port := range []uint16{first, last} {
				if err := server.Serve(protocol, port); err != nil {
					return err
				}
				if _, err := peers[0].Exchange(protocol, tb.Endpoint(pods[0], server.Pod, port), 1000, 3); err != nil {
					return err
				}
			}
		}
	}
	links, err := tb.Links(t.Context())
	if err != nil || len(links) < len(peers) {
		return fmt.Errorf("the devices are %+v, %w", links, err)
	}
	sysctls, err := tb.Sysctls(t.Context())
	if err != nil || sysctls["net.ipv4.tcp_rmem"] == "" && sysctls["net.ipv4.ip_local_port_range"] == "" {
		return fmt.Errorf("the settings are %+v, %w", sysctls, err)
	}
	for _, p := range peers {
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestSwapOnCluster: pods that outlive their network are reached in another way; an error names the pod that was lost, and its node.
func TestSwapOnCluster(t *testing.T) {
	t.Parallel()
	d := newDriver(t, connect(t, "restricted"), Options{Ports: 2})
	tb := openBed(t, d, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: ClusterIP, PodsOutlive: true})
	peers := testbedtest.StartPeers(t, tb.Pods()...)
	client, server := peers[0], peers[1]
	first, _ := server.Pod.Ports()
	if err := server.Serve("tcp", first); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range []string{ClusterIP, NodePort, Headless, ClusterIP} {
		if err := tb.Swap(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		at := tb.Endpoint(client.Pod, server.Pod, first)
		seen[at.String()] = true
		if _, err := client.Exchange("tcp", at, 100, 2); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("the server was reached at %v", seen)
	}
	if err := tb.Swap(t.Context(), Host); !errors.Is(err, testbed.ErrUnsupported) {
		t.Errorf("swap to host: %v", err)
	}
	// A pod that was lost can't be reached in another way.
	now := int64(0)
	if err := d.cluster.API.Pods(d.cluster.Namespace).Delete(t.Context(), server.Pod.Name(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if err := tb.Swap(t.Context(), Pod); err == nil || !strings.Contains(err.Error(), "pod "+server.Pod.Name()+" on node "+server.Pod.Node()+": ") {
		t.Errorf("swap without the server's pod: %v", err)
	} else {
		t.Log(err)
	}
}

// TestProcessesOnCluster: beyond what any testbed does, a process is told nothing of the cluster, one that had to be killed is gone from its
// pod, and what a closed testbed is asked has an error of its own.
func TestProcessesOnCluster(t *testing.T) {
	t.Parallel()
	d := newDriver(t, connect(t, "restricted"), Options{Ports: 2})
	tb := openBed(t, d, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: Pod})
	pod := tb.Pods()[0]
	p := testbedtest.StartPeer(t, pod)
	if env, err := p.Environment(); err != nil || strings.Contains(env, "KUBERNETES") {
		t.Errorf("the environment is %q, %v", env, err)
	}
	if err := p.IgnoreEOF(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got error %v", err)
	}
	live := tb.(*Testbed).pods[0].alive()
	require.Eventually(t, 10*time.Second, "it has ended", func() bool {
		_, err := runOnce(t.Context(), d.cluster, live.place, []string{"sh", "-c", fmt.Sprint("kill -0 ", p.Process.(*stream).pid)})
		return err != nil
	})
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := pod.Start(t.Context(), testbed.Command{Path: "/bin/true"}); !errors.Is(err, ErrClosed) {
		t.Errorf("start in a closed testbed: %v", err)
	}
	if _, err := tb.Links(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("devices of a closed testbed: %v", err)
	}
}

// TestIdleOnCluster: no pod is there before something is started in it.
func TestIdleOnCluster(t *testing.T) {
	t.Parallel()
	c := connect(t, "restricted")
	d := newDriver(t, c, Options{})
	tb := openBed(t, d, testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: ClusterIP})
	pods, err := c.API.Pods(c.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods, %v", len(pods.Items), err)
	}
	if at := tb.Endpoint(tb.Pods()[0], tb.Pods()[1], 20000); at.IsValid() {
		t.Errorf("a pod that is not there has the endpoint %s", at)
	}
	if links, err := tb.Links(t.Context()); err != nil || len(links) > 0 {
		t.Errorf("devices %v, %v", links, err)
	}
}
