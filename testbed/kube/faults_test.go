package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"netdelta/internal/require"
	"netdelta/testbed"
	kubeclient "netdelta/testbed/kube/client"
	"netdelta/testbed/kube/kubetest"
	"netdelta/testbed/testbedtest"
)

// as is the same cluster for somebody else, or by another way.
func as(t *testing.T, c *Cluster, change func(*rest.Config)) *Cluster {
	t.Helper()
	other := *c
	other.REST = rest.CopyConfig(c.REST)
	change(other.REST)
	api, err := kubeclient.New(other.REST, nil)
	if err != nil {
		t.Fatal(err)
	}
	other.API = api
	return &other
}

// TestRefusedOnCluster: what the cluster does not allow is told with what it takes.
func TestRefusedOnCluster(t *testing.T) {
	t.Parallel()
	c := connect(t, "restricted")
	nobody := as(t, c, func(r *rest.Config) { r.Impersonate.UserName = "nobody" })
	t.Run("rights", func(t *testing.T) {
		t.Parallel()
		d, err := NewDriver(nobody, Options{Image: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var rights *RightsError
		if err := d.Supports(t.Context(), testbed.Spec{Network: Pod}); !errors.As(err, &rights) || !strings.Contains(err.Error(), `cannot create resource "pods"`) || !strings.Contains(err.Error(), "--rbac") {
			t.Errorf("supports: %v", err)
		}
		if _, err := d.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: Pod}); !errors.As(err, &rights) || !strings.Contains(err.Error(), "--nodes") {
			t.Errorf("open: %v", err)
		}
	})
	t.Run("pod-security", func(t *testing.T) {
		t.Parallel()
		d := newDriver(t, c, Options{})
		err := d.Supports(t.Context(), testbed.Spec{Network: Host})
		if !errors.Is(err, testbed.ErrUnsupported) || !strings.Contains(err.Error(), "hostNetwork") || !strings.Contains(err.Error(), "enforce=privileged") {
			t.Errorf("network host: %v", err)
		}
		for _, name := range []string{Pod, ClusterIP, NodePort, Headless} {
			if err := d.Supports(t.Context(), testbed.Spec{Network: name}); err != nil {
				t.Errorf("network %s: %v", name, err)
			}
		}
		nodes, err := c.API.Nodes.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		both := len(nodes.Items[0].Spec.PodCIDRs) > 1
		if err := d.Supports(t.Context(), testbed.Spec{Network: Pod, Family: "ipv6"}); both && err != nil || !both && !errors.Is(err, testbed.ErrUnsupported) {
			t.Errorf("ipv6: %v", err)
		}
		if err := d.Supports(t.Context(), testbed.Spec{Network: "multus:a/b"}); !errors.Is(err, testbed.ErrUnsupported) {
			t.Errorf("multus: %v", err)
		}
	})
	t.Run("quota", func(t *testing.T) {
		t.Parallel()
		c := connect(t, "restricted") // the others would find no room
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
		quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
		if _, err := c.API.ResourceQuotas(c.Namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := c.API.ResourceQuotas(c.Namespace).Delete(t.Context(), "none", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}()
		require.Eventually(t, time.Minute, "the quota has come into force", func() bool {
			now, err := c.API.ResourceQuotas(c.Namespace).Get(t.Context(), "none", metav1.GetOptions{})
			require.NoError(t, err)
			return now.Status.Hard != nil
		})
		d := newDriver(t, c, Options{})
		if err := d.Supports(t.Context(), testbed.Spec{Network: Pod}); err == nil || !strings.Contains(err.Error(), "have the quota raised") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("unschedulable", func(t *testing.T) {
		t.Parallel()
		d := newDriver(t, c, Options{QoS: Guaranteed, CPU: "900"})
		tb := openBed(t, d, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: Pod})
		if _, err := tb.Pods()[0].Start(t.Context(), testbed.Command{Path: "/bin/true"}); err == nil || !strings.Contains(err.Error(), "Insufficient cpu") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("registry", func(t *testing.T) {
		t.Parallel()
		d := newDriver(t, c, Options{BaseImage: "127.0.0.1:1/none:1"})
		tb := openBed(t, d, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: Pod})
		if _, err := tb.Pods()[0].Start(t.Context(), testbed.Command{Path: "/bin/true"}); err == nil || !strings.Contains(err.Error(), "ImagePullBackOff") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		} else {
			t.Log(err)
		}
	})
	t.Run("image", func(t *testing.T) {
		t.Parallel()
		d := newDriver(t, c, Options{BaseImage: "localhost/netdelta/none:1", PullPolicy: corev1.PullNever})
		tb := openBed(t, d, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: Pod})
		if _, err := tb.Pods()[0].Start(t.Context(), testbed.Command{Path: "/bin/true"}); err == nil || !strings.Contains(err.Error(), "ErrImageNeverPull") {
			t.Errorf("got %v", err)
		}
	})
}

// TestLostOnCluster: a program that is lost says what became of its pod.
func TestLostOnCluster(t *testing.T) {
	t.Parallel()
	c := connect(t, "restricted")
	d := newDriver(t, c, Options{Memory: "96Mi"})
	pods := openBed(t, d, testbed.Spec{Nodes: 1, PodsPerNode: 4, Network: Pod}).Pods()[1:] // the first is who tries the way to the others
	soon, none := int64(0), metav1.DeleteOptions{}
	none.GracePeriodSeconds = &soon
	for i, x := range []struct {
		name string
		lose func(name string) error
		says []string
	}{
		{"deleted", func(name string) error { return c.API.Pods(c.Namespace).Delete(t.Context(), name, none) }, []string{"deleted"}},
		{"evicted", func(name string) error {
			return kubetest.Evict(t.Context(), c.API, c.Namespace, name)
		}, []string{"deleted", "taken away"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := testbedtest.StartPeer(t, pods[i])
			if err := x.lose(pods[i].Name()); err != nil {
				t.Fatal(err)
			}
			err := p.Wait()
			said := false
			for _, s := range x.says {
				said = said || err != nil && strings.Contains(err.Error(), s) && strings.Contains(p.Process.FailureReason(), s)
			}
			if !said || !strings.Contains(err.Error(), pods[i].Name()) {
				t.Errorf("got %v", err)
			}
			t.Log(err)
		})
	}
	t.Run("out-of-memory", func(t *testing.T) {
		p, err := pods[2].Start(t.Context(), testbed.Command{Path: "/bin/sh", Args: []string{"-c", "tail /dev/zero"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "memory") && !strings.Contains(err.Error(), "OOMKilled") {
			t.Errorf("got %v", err)
		} else {
			t.Log(err)
		}
	})
}

// relay is a way to the API server that can be interrupted.
type relay struct {
	to string

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

// through is the cluster by way of a relay.
func through(t *testing.T, c *Cluster) (*Cluster, *relay) {
	t.Helper()
	host, err := url.Parse(c.REST.Host)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{to: host.Host}
	t.Cleanup(func() { _ = l.Close(); r.interrupt(true) })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go r.pass(in)
		}
	}()
	return as(t, c, func(config *rest.Config) {
		config.Host = "https://" + l.Addr().String()
		config.TLSClientConfig.ServerName = host.Hostname()
	}), r
}

// pass joins a connection to the API server, unless the way is down.
func (r *relay) pass(in net.Conn) {
	out, err := net.Dial("tcp", r.to)
	r.mu.Lock()
	if err != nil || r.down {
		r.mu.Unlock()
		_ = in.Close()
		if err == nil {
			_ = out.Close()
		}
		return
	}
	r.conns = append(r.conns, in, out)
	r.mu.Unlock()
	go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
	_, _ = io.Copy(in, out)
	_ = in.Close()
}

// interrupt ends all connections; with down there are no new ones.
func (r *relay) interrupt(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// TestInterruptedOnCluster: a stream that is cut ends its program by name, and an API server that is away for a while is waited for.
func TestInterruptedOnCluster(t *testing.T) {
	t.Parallel()
	c, way := through(t, connect(t, "restricted"))
	d := newDriver(t, c, Options{})
	tb := openBed(t, d, testbed.Spec{Nodes: 1, PodsPerNode: 2, Network: Pod})
	pod := tb.Pods()[0]
	p := testbedtest.StartPeer(t, pod)
	way.interrupt(false)
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "cut") || !strings.Contains(err.Error(), pod.Name()) || !strings.Contains(err.Error(), "its pod still runs") {
		t.Errorf("got %v", err)
	}
	way.interrupt(true)
	time.AfterFunc(3*time.Second, func() {
		way.mu.Lock()
		way.down = false
		way.mu.Unlock()
	})
	again, err := testbedtest.NewPeer(t.Context(), tb.Pods()[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Progress(); err != nil {
		t.Error(err)
	}
}

// TestKilledOnCluster: the pods of a run whose program was killed end by themselves, and a sweep finds what it left, and nothing of a
// run that is under way.
func TestKilledOnCluster(t *testing.T) {
	t.Parallel()
	c := connect(t, "restricted")
	killed, way := through(t, c)
	victim, err := NewDriver(killed, streamed(t, Options{}))
	if err != nil {
		t.Fatal(err)
	}
	bed, err := victim.Open(t.Context(), testbed.Spec{Nodes: 1, PodsPerNode: 2, Network: ClusterIP})
	if err != nil {
		t.Fatal(err)
	}
	testbedtest.StartPeers(t, bed.Pods()...)
	victim.lease.stop()
	way.interrupt(true)
	lives := newDriver(t, c, Options{})
	stays := testbedtest.StartPeer(t, openBed(t, lives, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: Pod}).Pods()[0])
	began := time.Now()
	for _, p := range bed.Pods() {
		require.NoError(t, require.Await(80*time.Second-time.Since(began), fmt.Sprintf("pod %s has ended", p.Name()), func() error {
			pod, err := c.API.Pods(c.Namespace).Get(t.Context(), p.Name(), metav1.GetOptions{})
			require.NoError(t, err)
			if pod.Status.Phase != corev1.PodSucceeded {
				return fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return nil
		}))
	}
	t.Logf("the pods ended after %s", time.Since(began))
	removed, err := Sweep(t.Context(), c)
	if err != nil || len(removed) != 4 { // two pods, a service, a lease
		t.Errorf("removed %q, %v", removed, err)
	}
	if _, err := stays.Progress(); err != nil {
		t.Errorf("the other run: %v", err)
	}
	if again, err := Sweep(t.Context(), c); err != nil || len(again) > 0 {
		t.Errorf("removed %q, %v", again, err)
	}
}

// TestTwoRunsOnCluster: runs that are under way at the same time do not take each other's ports, names or pods.
func TestTwoRunsOnCluster(t *testing.T) {
	t.Parallel()
	c := connect(t, "privileged")
	var both sync.WaitGroup
	for range 2 {
		d := newDriver(t, c, Options{Ports: 3})
		both.Go(func() {
			tb, err := d.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: Host})
			if err == nil {
				err = errors.Join(talk(t, tb), tb.Close())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
}

// TestCancelledOnCluster: a start that is interrupted leaves nothing, and closing works with every context at its end.
func TestCancelledOnCluster(t *testing.T) {
	t.Parallel()
	d := newDriver(t, connect(t, "restricted"), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	tb, err := d.Open(ctx, testbed.Spec{Nodes: 1, PodsPerNode: 2, Network: ClusterIP})
	if err != nil {
		t.Fatal(err)
	}
	p, err := tb.Pods()[0].Start(ctx, testbed.Command{Path: "/bin/cat"})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, cancel)
	if _, err := tb.Pods()[1].Start(ctx, testbed.Command{Path: "/bin/cat"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := p.Write([]byte("still here\n")); err != nil {
		t.Errorf("a process that was started before: %v", err)
	}
	b := make([]byte, 11)
	if _, err := io.ReadFull(p, b); err != nil || string(b) != "still here\n" {
		t.Errorf("got %q, %v", b, err)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
}
