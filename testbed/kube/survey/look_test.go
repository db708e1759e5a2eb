package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// TestLook reads a cluster whole: nodes, clocks, what is free, what the namespace demands.
func TestLook(t *testing.T) {
	s := &server{objects: objects(t, "testdata/whole.yaml"), groups: []string{"k8s.cni.cncf.io"}, ahead: -3 * time.Minute}
	got, err := Look(t.Context(), s.start(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Clock; c == nil || c.Low > -3*time.Minute || c.High < -3*time.Minute-time.Second || c.High-c.Low > time.Second {
		t.Errorf("the API server's clock is %v ahead", c)
	}
	got.Clock = nil
	for _, r := range got.Rights {
		if !r.Allowed {
			t.Errorf("may not %s", r.Need)
		}
	}
	got.Rights = nil
	want := Survey{
		Cluster: "test", Version: "v1.34.4", User: User{Name: "alice", Groups: []string{"system:authenticated"}}, BestEffort: 1, Pods: 2,
		Nodes: []Node{
			{
				Name: "cp", Kubelet: "v1.34.4", Kernel: "6.12.9", OS: "Debian GNU/Linux 13", Runtime: "containerd://2.1.4", Ready: true,
				Shut: "it has the taint node-role.kubernetes.io/control-plane", Addresses: []string{"192.0.2.10"}, MilliCPU: 2000, FreeMilliCPU: 2000,
			},
			{
				Name: "w1", Kubelet: "v1.33.1", Kernel: "6.12.9", OS: "Debian GNU/Linux 13", Runtime: "containerd://2.1.4", Zone: "north", Ready: true,
				Addresses: []string{"192.0.2.11", "2001:db8::11"}, PodRanges: []string{"10.244.1.0/24", "fd00:10:244:1::/64"}, MilliCPU: 3900, FreeMilliCPU: 2100,
				Clock:     &Offset{Low: 3500 * time.Millisecond, High: 5500 * time.Millisecond, By: "its lease"},
				Resources: map[string]int64{"intel.com/sriov_netdevice": 4},
			},
			{
				Name: "w2", Kubelet: "v1.34.4", Kernel: "6.1.0", OS: "Debian GNU/Linux 12", Runtime: "containerd://1.7.2", Unready: "KubeletNotReady: no network",
				Addresses: []string{"192.0.2.12"}, PodRanges: []string{"10.244.2.0/24"}, MilliCPU: 4000, FreeMilliCPU: 4000,
				Clock: &Offset{Low: -2 * time.Second, High: time.Second, By: "the time of its last report"},
			},
		},
		Network:   Network{Doubt: "no plugin left a trace, and not every node has a range of addresses for pods"},
		Services:  Services{Count: 1},
		Secondary: Secondary{Multus: true, SRIOV: []string{"intel.com/sriov_netdevice"}},
		Namespace: Namespace{
			Name: "measurements", Level: "baseline",
			Quota: []Quota{
				{Name: "small", Resource: "pods", Hard: 10, Used: 9}, {Name: "small", Resource: "requests.cpu", Hard: 2500, Used: 500},
				{Name: "small", Resource: "fast.storageclass.storage.k8s.io/requests.storage", Hard: 5 << 30},
			},
			Limits: []Limit{
				{Name: "range", Kind: "Container", Bound: "max", Resource: "cpu", Value: 50},
				{Name: "range", Kind: "Container", Bound: "default", Resource: "memory", Value: 64 << 20},
			},
		},
		Asks:      Asks{MilliCPU: 10, Memory: 32 << 20},
		Admission: []Admission{{Pod: PodPlain, Admitted: true}, {Pod: PodHost, Admitted: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLookWithFewRights: what may not be read is a gap with the right that it takes, and the rest is there.
func TestLookWithFewRights(t *testing.T) {
	s := &server{objects: objects(t, "testdata/whole.yaml"), denied: []string{"list", "get", "create pods in"}}
	got, err := Look(t.Context(), s.start(t), Options{Pods: kube.Options{NodeAgent: true}})
	if err != nil {
		t.Fatal(err)
	}
	var takes []string
	for _, g := range got.Gaps {
		if g.Reason != "" {
			t.Errorf("%s: %s", g.What, g.Reason)
		}
		takes = append(takes, g.Right)
	}
	want := []string{
		"list nodes of the cluster", "list pods of the cluster", "list services of the cluster", "list daemonsets.apps of the cluster",
		"get configmaps in kube-system", "get namespaces measurements in measurements", "list resourcequotas in measurements", "list limitranges in measurements",
		"list networkpolicies.networking.k8s.io in measurements",
	}
	if diff := cmp.Diff(want, takes); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	for _, a := range got.Admission {
		if a.Admitted || a.Refusal != "" || a.Untried != "it takes the right to create pods in measurements" {
			t.Errorf("admission: %+v", a)
		}
	}
	if len(got.Admission) != 3 || got.Pods != -1 || got.BestEffort != -1 || got.Services.Count != -1 || got.Clock == nil {
		t.Errorf("got %+v", got)
	}
	var missing []string
	for _, r := range got.Rights {
		if !r.Allowed && r.For == ForRuns {
			missing = append(missing, r.String())
		}
	}
	if want := []string{
		"create pods in measurements", "get pods in measurements", "list pods in measurements", "get pods/exec in measurements", "list events in measurements",
		"get leases.coordination.k8s.io in measurements", "list leases.coordination.k8s.io in measurements", "get nodes of the cluster", "list nodes of the cluster",
	}; !slices.Equal(missing, want) {
		t.Errorf("missing are %q", missing)
	}
}

// TestAdmission: the pods that are tried differ in what guards look at, and the cluster's refusal is passed on.
func TestAdmission(t *testing.T) {
	refused := map[string]string{"host": `violates PodSecurity "restricted": host namespaces`, "node-agent": `violates PodSecurity "restricted": capabilities`}
	s := &server{refuse: func(p corev1.Pod) string {
		switch {
		case len(p.Spec.Containers[0].SecurityContext.Capabilities.Add) > 0:
			return refused["node-agent"]
		case p.Spec.HostNetwork:
			return refused["host"]
		}
		return ""
	}}
	got, err := Look(t.Context(), s.start(t), Options{Pods: kube.Options{NodeAgent: true}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Admission{{Pod: PodPlain, Admitted: true}, {Pod: PodHost, Refusal: refused["host"]}, {Pod: PodNodeAgent, Refusal: refused["node-agent"]}}
	if diff := cmp.Diff(want, got.Admission); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInspect: devices of nodes confirm or correct what annotations say.
func TestInspect(t *testing.T) {
	for name, c := range map[string]struct {
		devices []testbed.Interface
		err     error
		plugin  string
		mtu     int
		doubt   bool
	}{
		"there":  {devices: []testbed.Interface{{Name: "flannel.1", Kind: "vxlan", MTU: 1450}, {Name: "veth1", Kind: "veth", MTU: 1450}}, plugin: "flannel", mtu: 1450},
		"gone":   {devices: []testbed.Interface{{Name: "eth0", Kind: hardware, MTU: 1500}}, plugin: "bridge", doubt: true},
		"unseen": {err: errors.New("no node agent was admitted"), plugin: "flannel"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{objects: objects(t, "testdata/networks/flannel-vxlan.yaml")}
			got, err := Look(t.Context(), s.start(t), Options{Inspect: func(_ context.Context, nodes []string) (map[string][]testbed.Interface, error) {
				if !slices.Equal(nodes, []string{"a", "b"}) {
					t.Errorf("asked for the devices of %q", nodes)
				}
				if c.err != nil {
					return nil, c.err
				}
				return map[string][]testbed.Interface{"a": c.devices, "b": c.devices}, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if n := got.Network; n.Plugin != c.plugin || n.MTU != c.mtu || (n.Doubt != "") != c.doubt {
				t.Errorf("network is %+v", n)
			}
			if got.Devices != (c.err == nil) || (len(got.Gaps) > 0) != (c.err != nil) {
				t.Errorf("devices %v, gaps %+v", got.Devices, got.Gaps)
			}
		})
	}
}

// TestUnreachable: a cluster that does not answer, or does not let the user in, is an error that says what to do.
func TestUnreachable(t *testing.T) {
	for name, c := range map[string]struct {
		cluster func(t *testing.T) *kube.Cluster
		fix     string
	}{
		"unauthorised": {func(t *testing.T) *kube.Cluster { return (&server{status: http.StatusUnauthorized}).start(t) }, "get new ones"},
		"nobody": {func(t *testing.T) *kube.Cluster {
			s := &server{}
			cluster := s.start(t)
			s.web.Close()
			return cluster
		}, "start the cluster"},
		"ill": {func(t *testing.T) *kube.Cluster { return (&server{status: http.StatusInternalServerError}).start(t) }, "see whether it runs"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Look(t.Context(), c.cluster(t), Options{})
			if !errors.Is(err, kube.ErrUnreachable) || !strings.Contains(err.Error(), c.fix) || !strings.Contains(err.Error(), " test ") || !strings.Contains(err.Error(), "http://127.0.0.1:") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestLookEnds: a survey that is called off ends with the context's error.
func TestLookEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{refuse: func(corev1.Pod) string { cancel(); return "never" }}
	if _, err := Look(ctx, s.start(t), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestPlainData: a survey written and read again is judged alike.
func TestPlainData(t *testing.T) {
	s := &server{objects: objects(t, "testdata/whole.yaml")}
	first, err := Look(t.Context(), s.start(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var second Survey
	if err := json.Unmarshal(text, &second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fmt.Sprint(Judge(first)), fmt.Sprint(Judge(second))); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
}
