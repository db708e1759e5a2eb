package kube

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	clusternode "netdelta/extras/cluster/node"
	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
)

// ours skips the test unless its cluster is one that "make cluster-up" has made, which can be changed.
func ours(t *testing.T) supervisor.Folder {
	t.Helper()
	folder, err := supervisor.Own()
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "a cluster of this machine's (make cluster-up)", folder.Kubeconfig() == require.Cluster(t))
	return folder
}

// switchMultus has Multus on or off until the end of the test.
func switchMultus(t *testing.T, folder supervisor.Folder, to supervisor.Multus) {
	t.Helper()
	before, err := folder.Status()
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Switch(supervisor.Config{Multus: to}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Switch(supervisor.Config{Multus: before.Multus}); err != nil {
			t.Error(err)
		}
	})
}

// macvlan is a network over a device of each node, whose addresses are given out once in the cluster.
const macvlan = `{"cniVersion": "0.3.1", "name": %[1]q, "type": "macvlan", "master": %[2]q, "mode": "bridge",
 "ipam": {"type": "host-local", "dataDir": "/run/cni/addresses", "ranges": [[{"subnet": "10.88.%[3]d.0/24"}], [{"subnet": "fd77:88:0:%[3]d::/64"}]]}}`

// attachTo describes a secondary network in the cluster's namespace, whose number is in its addresses, and returns its name in studies.
func attachTo(t *testing.T, c *Cluster, number int, name, master, device string) string {
	t.Helper()
	config := fmt.Sprintf(macvlan, c.Namespace+"-"+name, master, number)
	body := fmt.Sprintf(`{"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": %q, "annotations": {%q: %q}}, "spec": {"config": %s}}`,
		name, annotationOfResource, device, strconv.Quote(config))
	err := c.API.REST.Post().AbsPath(attachmentGroup, "namespaces", c.Namespace, attachments).
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	return MultusPrefix + c.Namespace + "/" + name
}

// undefine takes the kind of secondary networks out of the cluster.
func undefine(t *testing.T, c *Cluster) {
	t.Helper()
	api := c.API.REST
	const kind = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/network-attachment-definitions.k8s.cni.cncf.io"
	if err := api.Delete().AbsPath(kind).Do(t.Context()).Error(); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	require.Eventually(t, time.Minute, "secondary networks are unknown", func() bool {
		return apierrors.IsNotFound(api.Get().AbsPath(attachmentGroup, attachments).Do(t.Context()).Error())
	})
}

// offer has a node offer devices to pods until the end of the test: by a device plugin that is real, of devices that are not.
func offer(t *testing.T, c *Cluster, folder supervisor.Folder, nodeName, device string, count int64) {
	t.Helper()
	program := filepath.Join(os.Getenv("NETDELTA_KUBERNETES"), "devices")
	_, err := os.Stat(program)
	require.Need(t, "the programs of the cluster (scripts/kubernetes.sh, NETDELTA_KUBERNETES)", err == nil)
	process, err := folder.NodeProcess(nodeName)
	if err != nil {
		t.Fatal(err)
	}
	plugin := exec.Command("nsenter", "--target", strconv.Itoa(process), "--mount", "--", clusternode.PartsFolder+"/devices", device, strconv.FormatInt(count, 10))
	plugin.Stderr = os.Stderr
	out, err := plugin.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := plugin.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plugin.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = plugin.Wait() // it was killed
	})
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the device plugin said %q: %v", said, err)
	}
	require.NoError(t, require.Await(time.Minute, fmt.Sprintf("node %s offers %d of %s", nodeName, count, device), func() error {
		n, err := c.API.Nodes.Get(t.Context(), nodeName, metav1.GetOptions{})
		require.NoError(t, err)
		if amount := n.Status.Allocatable[corev1.ResourceName(device)]; amount.Value() != count {
			return fmt.Errorf("it offers %v", n.Status.Allocatable)
		}
		return nil
	}))
}

// refused checks an error: what it says, and whether it is of what can't be done at all.
func refused(t *testing.T, what string, err error, unsupported bool, says ...string) {
	t.Helper()
	if err == nil || errors.Is(err, testbed.ErrUnsupported) != unsupported {
		t.Errorf("%s: got %v", what, err)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%s: %q is not in: %v", what, s, err)
		}
	}
}

// startIn starts something in the pods of a testbed, as many as there are, and returns the first error.
func startIn(t *testing.T, tb testbed.Testbed) error {
	var group sync.WaitGroup
	errs := make([]error, len(tb.Pods()))
	for i, p := range tb.Pods() {
		group.Go(func() {
			var peer *testbedtest.Peer
			if peer, errs[i] = testbedtest.NewPeer(t.Context(), p); errs[i] == nil {
				errs[i] = peer.Close()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// TestSecondaryOnCluster: pods speak in networks that Multus attaches them to, by both versions of IP, and what stands in the way is
// told in the words of the one that knows it.
func TestSecondaryOnCluster(t *testing.T) {
	t.Parallel() // Multus hands pods that ask for nothing on to the cluster's own network
	folder := ours(t)
	c := connect(t, "privileged")
	before, err := folder.Status()
	if err != nil {
		t.Fatal(err)
	}
	d := newDriver(t, c, Options{Ports: 4})
	supports := func(d *Driver, network string) error {
		return d.Supports(t.Context(), testbed.Spec{Network: network})
	}
	if before.Multus == supervisor.MultusOff {
		undefine(t, c)
		refused(t, "without Multus", supports(d, "multus:a/none"), true, "knows no NetworkAttachmentDefinitions", "have Multus installed")
	}
	switchMultus(t, folder, supervisor.MultusOn)
	second, broken := attachTo(t, c, 1, "second", "eth0", ""), attachTo(t, c, 2, "broken", "missing0", "")
	counted, foreign := attachTo(t, c, 3, "counted", "eth0", "vendor.example/sriov"), attachTo(t, c, 4, "foreign", "eth0", "vendor.example/none")

	refused(t, "a slip", supports(d, strings.TrimSuffix(second, "d")), true, "did you mean "+second+"?")
	refused(t, "another name", supports(d, "multus:"+c.Namespace+"/x"), true, "there are", second, broken)
	nobody, err := NewDriver(as(t, c, func(r *rest.Config) { r.Impersonate.UserName = "nobody" }), Options{Image: "x"})
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "no right", supports(nobody, second), true, `User "nobody" cannot get`, "--namespace "+c.Namespace+" create role")
	refused(t, "no device", supports(d, foreign), true, "vendor.example/none, which it names and no node has")

	bed := func(o Options, spec testbed.Spec) testbed.Testbed {
		if err := supports(d, spec.Network); err != nil {
			t.Fatal(err)
		}
		o.Ports = 4
		return openBed(t, newDriver(t, c, o), spec)
	}
	offer(t, c, folder, "w1", "vendor.example/sriov", 3)
	var all sync.WaitGroup
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		tb := bed(Options{}, testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: second, Family: family})
		all.Go(func() {
			if err := talk(t, tb); err != nil {
				t.Errorf("%s: %v", family, err)
				return
			}
			at := tb.Endpoint(tb.Pods()[0], tb.Pods()[2], 20000).Addr()
			if !netip.MustParsePrefix("10.88.1.0/24").Contains(at) && !netip.MustParsePrefix("fd77:88:0:1::/64").Contains(at) || at.Is6() != (family == result.IPv6) {
				t.Errorf("%s: the server is reached at %s", family, at)
			}
		})
	}
	for _, x := range []struct {
		what string
		bed  testbed.Testbed
		says []string
	}{
		{"a plugin that fails", bed(Options{}, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: broken}), []string{"FailedCreatePodSandBox", c.Namespace + "-broken", "Link not found"}},
		{"too few devices", bed(Options{Nodes: []string{"w1"}}, testbed.Spec{Nodes: 1, PodsPerNode: 4, Network: counted}), []string{"not scheduled", "Insufficient vendor.example/sriov", "-p", "takes one vendor.example/sriov"}},
	} {
		all.Go(func() {
			err := startIn(t, x.bed)
			refused(t, x.what, err, false, x.says...)
			if err != nil && x.what == "too few devices" && strings.Count(err.Error(), "not scheduled") != 1 {
				t.Errorf("of four pods one finds no device: %v", err)
			}
		})
	}
	all.Wait()

	switchMultus(t, folder, supervisor.MultusOff)
	err = startIn(t, openBed(t, newDriver(t, c, Options{Ports: 4}), testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: second}))
	refused(t, "Multus that does not run", err, false, "no annotation "+annotationStatus, "does Multus run on its node?")
}

// TestClassesOnCluster: pods have the class of service that they are asked to have.
func TestClassesOnCluster(t *testing.T) {
	t.Parallel()
	c := connect(t, "restricted")
	var all sync.WaitGroup
	for asked, want := range map[QoS]corev1.PodQOSClass{BestEffort: corev1.PodQOSBestEffort, "": corev1.PodQOSBurstable, Guaranteed: corev1.PodQOSGuaranteed} {
		d := newDriver(t, c, Options{QoS: asked, Ports: 2, CPU: "100m"})
		all.Go(func() {
			live, err := d.Launcher().Launch(t.Context(), Wish{Name: "class", Role: RoleServer})
			if err != nil {
				t.Errorf("%s: %v", asked, err)
				return
			}
			pod, err := c.API.Pods(c.Namespace).Get(context.Background(), live.Name(), metav1.GetOptions{})
			if err != nil || pod.Status.QOSClass != want {
				t.Errorf("%q: the pod has the class %q, %v", asked, pod.Status.QOSClass, err)
			}
			if err := live.Delete(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
