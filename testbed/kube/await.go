package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"netdelta/testbed/kube/client"
)

// unscheduledWithin is how long a pod may wait for room on its node: pods of a build before may be about to go.
const unscheduledWithin = 30 * time.Second

const (
	// sandboxFailed is the kubelet's word for a pod whose networks can't be made, which it tries again and again.
	sandboxFailed = "FailedCreatePodSandBox"
	// unattachedWithin is how long a pod may wait for its secondary network.
	unattachedWithin = 20 * time.Second
)

// nodeAskedAfter is how long a pod may take before its node is looked at: one that was lost starts nothing.
const nodeAskedAfter = 5 * time.Second

// await waits until a pod's container runs.
func (l *Launcher) await(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return l.awaitThat(ctx, namespace, name, "up", l.options.Within, running)
}

// awaitThat waits until a pod is as it should be, for which what has a word. It asks again and again rather than watch: an API server
// that is restarted meanwhile does no harm.
func (l *Launcher) awaitThat(ctx context.Context, namespace, name, what string, within time.Duration, is func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var last error
	wait := l.waits.begin("pod "+name+" to be "+what, within)
	defer wait.stop()
	for waited := range Polling(ctx, apiPause) {
		wait.still(last)
		pod, err := l.cluster.API.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, errors.New("it was deleted by somebody else")
		case apierrors.IsForbidden(err):
			return nil, withFix(err)
		case err != nil:
			last = fmt.Errorf("the API server does not answer: %w", err)
		case is(pod):
			return pod, nil
		default:
			var hopeless bool
			if hopeless, last = l.obstacle(ctx, pod, waited); hopeless {
				return nil, last
			}
		}
		if waited > within {
			return nil, fmt.Errorf("not %s within %s: %w", what, within, last)
		}
	}
	if last != nil {
		return nil, fmt.Errorf("%w: not %s so far: %w", context.Cause(ctx), what, last)
	}
	return nil, context.Cause(ctx)
}

// running says whether programs can be started in a pod.
func running(pod *corev1.Pod) bool {
	s := pod.Status
	return s.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && len(s.PodIPs) > 0 &&
		len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Running != nil
}

// obstacle is what a pod that is not up waits for, and whether it does so in vain.
func (l *Launcher) obstacle(ctx context.Context, pod *corev1.Pod, waited time.Duration) (hopeless bool, why error) {
	if what := podFailure(pod); what != "" {
		return true, errors.New(what)
	}
	if pod.Spec.NodeName != "" && waited > nodeAskedAfter {
		if what := l.cluster.nodeOf(ctx, pod); what != "" {
			return true, errors.New(what)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
			err := fmt.Errorf("node %s can't have the image %s: %s: %s; push it where the nodes can pull it, or give another with --image or --base-image", pod.Spec.NodeName, c.Image, w.Reason, w.Message)
			return w.Reason != "ErrImagePull", err // which is tried again at once, and has a longer name then
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return true, fmt.Errorf("node %s can't start it: %s: %s", pod.Spec.NodeName, w.Reason, w.Message)
		}
	}
	if hopeless, why := l.cluster.pending(ctx, pod, waited); why != nil {
		return hopeless, why
	}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status == corev1.ConditionTrue {
			continue
		}
		err := fmt.Errorf("it is not scheduled: %s; %s", sentence(c.Reason, c.Message), room(pod, c.Message))
		return waited > unscheduledWithin, err
	}
	words, times := l.cluster.lastWarning(ctx, pod.Namespace, "Pod", pod.Name)
	// The cluster's own network may be about to come. One that was asked for by name is there, or can't be attached; but a busy API server
	// may have kept Multus waiting.
	stuck := pod.Annotations[annotationNetworks] != "" && strings.Contains(words, sandboxFailed) && !strings.Contains(words, "deadline exceeded") &&
		times > 1 && waited > unattachedWithin
	return stuck, errors.New(sentence("it is "+strings.ToLower(string(pod.Status.Phase)), words))
}

// room is what helps a pod that the scheduler finds no room for.
func room(pod *corev1.Pod, said string) string {
	for _, c := range pod.Spec.Containers {
		for name := range c.Resources.Limits {
			if strings.Contains(string(name), "/") && strings.Contains(said, "Insufficient "+string(name)) {
				return fmt.Sprintf("each pod of its network takes one %s: name nodes that have more of them with --nodes, or measure fewer workloads and placements at once", name)
			}
		}
	}
	return "free processors or memory there, name other nodes with --nodes, or ask for less with --qos and --memory"
}

const (
	// deleteWithin bounds the wait for an object that is being deleted: a node that is lost keeps its pods for long.
	deleteWithin = 30 * time.Second
	// apiPause is how often the cluster is asked for what is waited for.
	apiPause = 150 * time.Millisecond
)

// errLingers is the error of an object that does not go: its node is lost, or the API server.
var errLingers = errors.New("it is still there")

// create has the API server make an object, until it answers. After a try without an answer, an object of that name that exists is the
// one that was asked for. Errors name the object as what.
func create[T metav1.Object, L any](ctx context.Context, r client.Resource[T, L], what string, object T) (T, error) {
	tries := 0
	made, err := fetch(ctx, func() (T, error) {
		made, err := r.Create(ctx, object, metav1.CreateOptions{})
		if tries++; tries > 1 && apierrors.IsAlreadyExists(err) {
			return r.Get(ctx, object.GetName(), metav1.GetOptions{})
		}
		return made, err
	})
	if err != nil {
		return made, fmt.Errorf("make %s %s: %w", what, object.GetName(), withFix(err))
	}
	return made, nil
}

// dryCreate has the API server go through the motions of making an object: rights, quota and what else may refuse it.
func dryCreate[T, L any](ctx context.Context, r client.Resource[T, L], what string, object T) error {
	err := persist(ctx, func() error {
		_, err := r.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if err != nil {
		return fmt.Errorf("try to make a %s: %w", what, withFix(err))
	}
	return nil
}

// remove deletes an object, and what belongs to it after it. One that is gone already is no error. It has a time of its own, since what calls it may have
// been interrupted.
func remove[T, L any](r client.Resource[T, L], what, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deleteWithin)
	defer cancel()
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	err := persist(ctx, func() error { return r.Delete(ctx, name, background) })
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return nil
	case transient(err):
		return fmt.Errorf("delete %s %s: %w: %w", what, name, errLingers, err)
	}
	return fmt.Errorf("delete %s %s: %w", what, name, withFix(err))
}

// removeAndWait deletes an object and waits until it is gone. Kubectl has a word of its own for what it is, and held says why it stays, "" where
// nothing but time is missing. It has a time of its own, as remove has.
func removeAndWait[T, L any](r client.Resource[T, L], what, kubectl, namespace, name string, held func(T) string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deleteWithin)
	defer cancel()
	var deleted time.Time
	for range Polling(ctx, apiPause) {
		var err error
		words := ""
		if deleted.IsZero() {
			if err = r.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(terminationGrace)}); err == nil {
				deleted = time.Now()
			}
		} else {
			var there T
			if there, err = r.Get(ctx, name, metav1.GetOptions{}); err == nil {
				words = held(there)
			}
		}
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case apierrors.IsForbidden(err):
			return fmt.Errorf("delete %s %s: %w", what, name, withFix(err))
		case words != "" && time.Since(deleted) > heldAfter:
			return fmt.Errorf("delete %s %s: %w: %s", what, name, errLingers, words)
		}
	}
	return fmt.Errorf("delete %s %s: %w after %s; look at it with kubectl -n %s describe %s %s; netdelta cleanup --testbed kubernetes removes it later",
		what, name, errLingers, deleteWithin, namespace, kubectl, name)
}

// deletePod removes a pod and waits until it is gone.
func (c *Cluster) deletePod(namespace, name string) error {
	return removeAndWait(c.API.Pods(namespace), "pod", "pod", namespace, name, heldPod)
}

// lastWarning is the last warning about an object of a namespace, and how often there were warnings of its kind; "" where there is none or this
// user may not look.
func (c *Cluster) lastWarning(ctx context.Context, namespace, kind, name string) (words string, times int) {
	events, err := c.API.Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "type=Warning,involvedObject.kind=" + kind + ",involvedObject.name=" + name,
	})
	if err != nil || len(events.Items) == 0 {
		return "", 0 // they are only there to help
	}
	last := events.Items[len(events.Items)-1]
	for _, e := range events.Items {
		if e.Reason == last.Reason {
			times += int(max(e.Count, 1))
		}
	}
	return sentence(last.Reason, last.Message), times
}

const (
	// patience is how long an API server that does not answer is asked again: one that is restarted is back by then.
	patience = time.Minute
	// persistPause is the time between two tries.
	persistPause = 500 * time.Millisecond
)

// persist calls f again while the API server can't be asked. Anything that f is told by the API server ends it.
func persist(ctx context.Context, f func() error) error {
	var err error
	for waited := range Polling(ctx, persistPause) {
		if err = f(); err == nil || !transient(err) || waited > patience {
			return err
		}
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}

// transient says whether an error means that the API server could not be asked, or asks to be asked later, or that it cut a stream.
func transient(err error) bool {
	var op *net.OpError
	return errors.Is(err, errDropped) || errors.As(err, &op) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err)
}

// fetch calls get as persist does.
func fetch[T any](ctx context.Context, get func() (T, error)) (found T, err error) {
	err = persist(ctx, func() (err error) {
		found, err = get()
		return err
	})
	return found, err
}

// Polling yields how long it has been waited: at once, and again after each pause, until ctx ends.
func Polling(ctx context.Context, every time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		began := time.Now()
		for yield(time.Since(began)) {
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return
			}
		}
	}
}
