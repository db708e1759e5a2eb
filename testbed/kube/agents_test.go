package kube

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/result"
	"netdelta/testbed/kube/kubetest"
)

// An agent of the cluster that ends while it is measured is named with its node, its end, and when it was back; those of others are not.
func TestAgentsAreWatched(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds int) metav1.Time { return metav1.NewTime(began.Add(time.Duration(seconds) * time.Second)) }
	running := func(since int) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(since)}}
	}
	ended := func(when int) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", FinishedAt: at(when)}}
	}
	agent := func(name, owner string, host bool, restarts int32, now, last corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: "kube-system", UID: types.UID(name), CreationTimestamp: at(0),
				OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: owner, Controller: new(true)}},
			},
			Spec:   corev1.PodSpec{NodeName: "w1", HostNetwork: host},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", RestartCount: restarts, State: now, LastTerminationState: last}}},
		}
	}
	node := func(reported int) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeNetworkUnavailable, Reason: "CiliumIsUp", LastHeartbeatTime: at(reported)},
		}}}
	}
	whole := agent("cilium-a", "cilium", true, 1, running(0), corev1.ContainerState{})
	const setting = "agent agent of pod cilium-a"
	change := func(setting, was, is string, when int) result.ConfigChange {
		return result.ConfigChange{Device: "node w1", Setting: setting, Was: was, Is: is, At: at(when).Time}
	}
	for name, c := range map[string]struct {
		after []*corev1.Pod
		node  *corev1.Node
		want  []result.ConfigChange
	}{
		"nothing happens": {[]*corev1.Pod{whole}, node(0), nil},
		"it is back": {
			[]*corev1.Pod{agent("cilium-a", "cilium", true, 2, running(12), ended(10))}, node(13),
			[]result.ConfigChange{change(setting, agentRuns, "ended (OOMKilled)", 10), change(setting, "ended (OOMKilled)", agentRuns, 13)},
		},
		"it has ended": {[]*corev1.Pod{agent("cilium-a", "cilium", true, 1, ended(10), corev1.ContainerState{})}, node(0), []result.ConfigChange{change(setting, agentRuns, "ended (OOMKilled)", 10)}},
		"replaced": {
			[]*corev1.Pod{agent("cilium-b", "cilium", true, 0, running(12), corev1.ContainerState{})}, node(0),
			[]result.ConfigChange{change(setting, agentRuns, "replaced by pod cilium-b", 0), change(setting, "replaced by pod cilium-b", agentRuns, 13)},
		},
		"gone": {nil, node(0), []result.ConfigChange{{Device: "node w1", Setting: setting, Was: agentRuns, Is: agentGone}}},
		"no pod": {
			[]*corev1.Pod{whole}, node(10),
			[]result.ConfigChange{change("agent of the network", agentRuns, "started again (CiliumIsUp)", 10), change("agent of the network", "started again (CiliumIsUp)", agentRuns, 11)},
		},
		"another's": {[]*corev1.Pod{whole, agent("logs", "logs", false, 5, ended(1), corev1.ContainerState{})}, node(0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := launcherWith(t, Options{})
				l.cluster.API = kubetest.API(t, node(0), whole)
				d := &Driver{cluster: l.cluster, launcher: l}
				tb := &Testbed{driver: d, pods: []*pod{{node: "w1"}, {node: "w1"}}}
				w, err := tb.WatchConfig(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * sharedFor)
				objects := []runtime.Object{c.node}
				for _, p := range c.after {
					objects = append(objects, p)
				}
				l.cluster.API = kubetest.API(t, objects...)
				got, err := w.End()
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					got[i].At = got[i].At.UTC()
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
