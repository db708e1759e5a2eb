package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// adoptAtOnce is how many pods the program is brought to at the same time: it goes through one API server.
const adoptAtOnce = 8

// fleetLook is how often the pods of a fleet are listed: all of them with one request.
const fleetLook = 500 * time.Millisecond

// fleetWave is how many pods of a Job are made ahead of those that the program was brought to: an unused pod ends by
// itself.
const fleetWave = int32(12)

// newcomer is a pod of a fleet on its way.
type newcomer struct {
	index int
	role  Role
	pod   *fleetPod
	err   error
	done  atomic.Bool
}

// adopt brings the program to a pod, and keeps it up from then on.
func (f *Fleet) adopt(ctx context.Context, namespace, name string) (*fleetPod, error) {
	live, err := f.launcher.Adopt(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	keeper, err := live.Start(ctx, testbed.Command{Path: live.Program(), Args: []string{inside.Verb, inside.Hold}})
	if err != nil {
		return nil, fmt.Errorf("keep pod %s up: %w", name, err)
	}
	return &fleetPod{LivePod: live, keeper: keeper}, nil
}

// widen has the Jobs make as many pods more as have been seen to.
func (f *Fleet) widen(ctx context.Context, came map[string]*newcomer, made map[Role]int32) error {
	seen := map[Role]int32{}
	for _, n := range came {
		if n.done.Load() {
			seen[n.role]++
		}
	}
	for role, count := range map[Role]int{RoleClient: f.spec.Clients, RoleServer: f.spec.Servers} {
		wanted := min(seen[role]+fleetWave, int32(count))
		if wanted <= max(made[role], min(fleetWave, int32(count))) {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"parallelism":%d}}`, wanted)
		_, err := f.launcher.cluster.API.Jobs(f.launcher.cluster.Namespace).Patch(ctx, f.name(string(role)), types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("have job %s make more pods: %w", f.name(string(role)), withFix(err))
		}
		if err == nil {
			made[role] = wanted // else it is tried again with the next look
		}
	}
	return nil
}

// gather waits for the pods to come up, each by itself, and brings the program to each as it does.
func (f *Fleet) gather(ctx context.Context) error {
	wanted := f.spec.Clients + f.spec.Servers
	came := map[string]*newcomer{}
	var busy sync.WaitGroup
	places := make(chan struct{}, adoptAtOnce)
	began, news := time.Now(), time.Now() // the time that a pod may take counts from the one before
	made := map[Role]int32{}
	var last error
	for len(came) < wanted && time.Since(news) < f.launcher.options.Within {
		if err := f.widen(ctx, came, made); err != nil {
			return err
		}
		pods, err := f.pods(ctx)
		switch {
		case apierrors.IsForbidden(err):
			return withFix(err)
		case err != nil:
			last = fmt.Errorf("the API server does not answer: %w", err)
		}
		for i := range pods {
			pod := &pods[i]
			if came[pod.Name] != nil {
				continue
			}
			n := &newcomer{index: indexOf(pod), role: Role(pod.Labels[LabelRole])}
			if !running(pod) {
				hopeless, why := f.obstacle(ctx, pod, time.Since(began))
				if last = why; hopeless {
					n.err = why
					n.done.Store(true)
					came[pod.Name] = n
				}
				continue
			}
			came[pod.Name] = n
			news = time.Now()
			busy.Go(func() {
				places <- struct{}{}
				n.pod, n.err = f.adopt(ctx, pod.Namespace, pod.Name)
				<-places
				n.done.Store(true)
			})
		}
		select {
		case <-time.After(fleetLook):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	busy.Wait()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return f.count(ctx, came, last)
}

// obstacle is what a pod waits for. The cluster is asked for more than the pod's own words only now and then.
func (f *Fleet) obstacle(ctx context.Context, pod *corev1.Pod, waited time.Duration) (bool, error) {
	if waited < unscheduledWithin && podFailure(pod) == "" && !waitsForImage(pod) {
		return false, errors.New("it has not started yet")
	}
	return f.launcher.obstacle(ctx, pod, waited)
}

// waitsForImage says whether the kubelet has something to say of a pod's container.
func waitsForImage(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason != "ContainerCreating" && c.State.Waiting.Reason != "PodInitializing"
	})
}

// indexOf is a pod's number in its Job.
func indexOf(pod *corev1.Pod) int {
	i, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return 0 // only the order depends on it
	}
	return i
}

// count sorts the pods that came by role and number, and names those that did not.
func (f *Fleet) count(ctx context.Context, came map[string]*newcomer, last error) error {
	names := slices.SortedFunc(maps.Keys(came), func(a, b string) int { return cmp.Compare(came[a].index, came[b].index) })
	asked := map[Role]int{RoleClient: f.spec.Clients, RoleServer: f.spec.Servers}
	for _, name := range names {
		n := came[name]
		asked[n.role]--
		if n.err != nil {
			f.missing[name] = n.err.Error()
			last = n.err
			continue
		}
		if n.role == RoleServer {
			f.place(n.pod.LivePod)
			f.servers = append(f.servers, n.pod)
		} else {
			f.clients = append(f.clients, n.pod)
		}
	}
	for role, left := range asked {
		if left <= 0 {
			continue
		}
		why := f.jobWords(ctx, role, last)
		for i := range left {
			f.missing[f.name(string(role))+" pod "+strconv.Itoa(i+1)+" of those that did not come"] = why
		}
	}
	for _, side := range []struct {
		what string
		pods []testbed.Pod
	}{{"server", f.servers}, {"client", f.clients}} {
		if len(side.pods) == 0 {
			return fmt.Errorf("no pod of a %s came up within %s: %w", side.what, f.launcher.options.Within, cmp.Or(last, errors.New("the Job has made none")))
		}
	}
	return nil
}

// jobWords says why a Job has not made all of its pods: its own last warning, where there is one.
func (f *Fleet) jobWords(ctx context.Context, role Role, last error) string {
	words, _ := f.launcher.cluster.lastWarning(ctx, f.launcher.cluster.Namespace, "Job", f.name(string(role)))
	switch {
	case words != "":
		return words
	case last != nil:
		return last.Error()
	}
	return "not up within " + f.launcher.options.Within.String()
}

// place gives a server ports of its own: servers in their nodes' namespaces may share these.
func (f *Fleet) place(p *LivePod) {
	if f.spec.Network != Host {
		return
	}
	first, last := f.launcher.hostPorts(f.slot) // which all of them share
	width := max(1, (last-first+1)/uint16(f.spec.Servers))
	p.first = min(first+uint16(len(f.servers))*width, last)
	p.last = min(p.first+width-1, last)
}
