package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"netdelta/testbed/kube/client"
)

// heldAfter is how long an object may be held by finalizers alone before it is given up: who has put them there may be about to take
// them away.
const heldAfter = 10 * time.Second

// held says which finalizers keep an object that has been deleted, and what to do; "" where none does.
func held(kind, namespace string, o metav1.ObjectMeta) string {
	if o.DeletionTimestamp == nil || len(o.Finalizers) == 0 {
		return ""
	}
	return fmt.Sprintf(`it is deleted, but stays for its finalizers (%s): see whether what takes them away runs, or take them away by kubectl -n %s patch %s %s --type=merge -p '{"metadata":{"finalizers":null}}'`,
		strings.Join(o.Finalizers, ", "), namespace, kind, o.Name)
}

// heldPod is held for a pod, "" while its containers run: the kubelet then is what it waits for.
func heldPod(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			return ""
		}
	}
	return held("pod", pod.Namespace, pod.ObjectMeta)
}

// leftover is an object of a run that was deleted and is still there.
type leftover struct {
	kind string
	metav1.ObjectMeta
}

// name is how people call it.
func (l leftover) name() string { return l.kind + " " + l.Name }

// removeObjects removes all objects of a run and waits until they are gone. It says which were there and are not any more.
func (c *Cluster) removeObjects(ctx context.Context, run RunID) (removed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*deleteWithin)
	defer cancel()
	var told []string
	var left []leftover
	for waited := range Polling(ctx, apiPause) {
		left, err = c.removeOnce(ctx, run, &told)
		removed = slices.DeleteFunc(slices.Clone(told), func(what string) bool {
			return slices.ContainsFunc(left, func(l leftover) bool { return l.name() == what })
		})
		switch {
		case err != nil && ctx.Err() == nil:
			return removed, err
		case err == nil && len(left) == 0:
			return removed, nil
		case err == nil && waited > heldAfter && !slices.ContainsFunc(left, func(l leftover) bool { return held(l.kind, c.Namespace, l.ObjectMeta) == "" }):
			return removed, c.stuck(run, left)
		}
	}
	return removed, c.stuck(run, left)
}

// removeOnce deletes the objects of a run that are not in told yet, and says which are still there.
func (c *Cluster) removeOnce(ctx context.Context, run RunID, told *[]string) (left []leftover, err error) {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(terminationGrace), PropagationPolicy: new(metav1.DeletePropagationBackground)}
	for _, k := range c.kinds() {
		all, err := k.find(ctx, run.Selector())
		if err != nil {
			return left, fmt.Errorf("look for what run %s has left: %w; netdelta cleanup --testbed kubernetes --namespace %s removes it later", run, err, c.Namespace)
		}
		if k.name == "lease" && len(left) > 0 {
			break
		}
		for _, o := range all {
			l := leftover{k.name, o}
			if left = append(left, l); slices.Contains(*told, l.name()) {
				continue
			}
			err := persist(ctx, func() error {
				return k.delete(ctx, o.Name, now)
			})
			if err != nil && !apierrors.IsNotFound(err) {
				return left, fmt.Errorf("delete %s: %w", l.name(), withFix(err))
			}
			*told = append(*told, l.name())
		}
	}
	return left, nil
}

// LeftError is the error of objects of a run that do not go.
type LeftError struct {
	// Said says which run's they are, why they stay and what to do.
	Said string
}

// Error implements error.
func (e *LeftError) Error() string { return e.Said }

// stuck is the error of objects that do not go.
func (c *Cluster) stuck(run RunID, left []leftover) error {
	var why []string
	for _, l := range left {
		if words := held(l.kind, c.Namespace, l.ObjectMeta); words != "" {
			why = append(why, l.name()+": "+words)
		}
	}
	if len(why) == 0 {
		why = []string{fmt.Sprintf("look at them with kubectl -n %s get pods,services -l %s", c.Namespace, run.Selector())}
	}
	return &LeftError{fmt.Sprintf("run %s: %d objects are still there: %s", run, len(left), strings.Join(why, "; "))}
}

// kind is a kind of objects that netdelta makes in a namespace.
type kind struct {
	name   string
	list   func(ctx context.Context, o metav1.ListOptions) ([]metav1.ObjectMeta, error)
	delete func(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// kinds are all of them, in the order in which they are removed: what makes others first, and the lease last, so that what is left
// after an interruption is found again.
func (c *Cluster) kinds() []kind {
	return []kind{
		kindOf("statefulset", c.API.StatefulSets(c.Namespace)),
		kindOf("job", c.API.Jobs(c.Namespace)),
		kindOf("networkpolicy", c.API.NetworkPolicies(c.Namespace)),
		kindOf("service", c.API.Services(c.Namespace)),
		kindOf("pod", c.API.Pods(c.Namespace)),
		kindOf("persistentvolumeclaim", c.API.PersistentVolumeClaims(c.Namespace)),
		kindOf("lease", c.API.Leases(c.Namespace)),
	}
}

// kindOf lists and deletes the objects of a resource. The cluster's own finalizer of volume claims is left out: it goes with the pod.
func kindOf[T any, L runtime.Object](name string, r client.Resource[T, L]) kind {
	return kind{name, func(ctx context.Context, o metav1.ListOptions) (all []metav1.ObjectMeta, err error) {
		list, err := r.List(ctx, o)
		if err != nil {
			return nil, err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			if err == nil {
				all = append(all, metav1.ObjectMeta{
					Name: object.GetName(), Labels: object.GetLabels(), DeletionTimestamp: object.GetDeletionTimestamp(),
					Finalizers: slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(f string) bool { return f == claimProtection }),
				})
			}
			return err
		})
		return all, err
	}, r.Delete}
}

// find lists the objects of a kind. Where this user may not look, there are none: netdelta could not have made them in their name.
func (k kind) find(ctx context.Context, selector string) ([]metav1.ObjectMeta, error) {
	all, err := fetch(ctx, func() ([]metav1.ObjectMeta, error) {
		return k.list(ctx, metav1.ListOptions{LabelSelector: selector})
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return all, err
}

// Sweep removes what runs have left in the cluster's namespace whose program was killed, and says what it removed: "pod NAME". Runs
// that are under way are left alone, which takes some seconds to find out.
func Sweep(ctx context.Context, c *Cluster) (removed []string, err error) {
	var runs []RunID
	for _, k := range c.kinds() {
		all, err := k.find(ctx, SelectAll)
		if err != nil {
			return nil, fmt.Errorf("look for what runs have left in namespace %s: %w", c.Namespace, err)
		}
		for _, o := range all {
			if run, err := ParseRunID(o.Labels[LabelRun]); err == nil && !slices.Contains(runs, run) {
				runs = append(runs, run)
			}
		}
	}
	alive, err := c.underWay(ctx, runs)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, run := range runs {
		if alive[run] {
			continue
		}
		gone, err := c.removeObjects(ctx, run)
		removed, errs = append(removed, gone...), append(errs, err)
	}
	return removed, errors.Join(errs...)
}

const (
	// renewEvery is how often a run says that it is under way, and silentFor how long one may say nothing before it is taken to be
	// dead. A sweep waits that long rather than compare clocks.
	renewEvery = 5 * time.Second
	silentFor  = 20 * time.Second
)

// lease says to others that a run is under way.
type lease struct {
	cluster *Cluster
	run     RunID

	mu   sync.Mutex
	ever bool               // it was held once
	stop context.CancelFunc // nil while it is not held
	done chan struct{}
}

// name of the Lease.
func (l *lease) name() string { return l.run.Name("run") }

// hold makes the Lease, and renews it until it is released. A lease that is held already is left as it is.
func (l *lease) hold(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		return nil
	}
	l.ever = true
	now := metav1.NowMicro()
	made := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.name(), Namespace: l.cluster.Namespace, Labels: l.run.Labels(RoleLease)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(string(l.run)), LeaseDurationSeconds: new(int32(silentFor / time.Second)), AcquireTime: &now, RenewTime: &now,
		},
	}
	err := persist(ctx, func() error {
		_, err := l.cluster.API.Leases(l.cluster.Namespace).Create(ctx, made, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("say in the cluster that a run is under way: %w", withFix(err))
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.done = stop, make(chan struct{})
	go l.renew(running, l.done)
	return nil
}

// began says whether the lease was ever to be held.
func (l *lease) began() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ever
}

// renew says again and again that the run is under way. An API server that does not answer for a while is asked again.
func (l *lease) renew(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	leases := l.cluster.API.Leases(l.cluster.Namespace)
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now, err := leases.Get(ctx, l.name(), metav1.GetOptions{})
		if err != nil {
			continue
		}
		now.Spec.RenewTime = new(metav1.NowMicro())
		_, _ = leases.Update(ctx, now, metav1.UpdateOptions{}) // the next one may come through
	}
}

// release removes the Lease. It is idempotent.
func (l *lease) release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		return nil
	}
	l.stop()
	<-l.done
	l.stop = nil
	err := persist(ctx, func() error {
		return l.cluster.API.Leases(l.cluster.Namespace).Delete(ctx, l.name(), metav1.DeleteOptions{})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("say in the cluster that the run is over: %w", err)
	}
	return nil
}

// underWay tells which of some runs are: those whose leases are renewed while one waits.
func (c *Cluster) underWay(ctx context.Context, runs []RunID) (map[RunID]bool, error) {
	leases := c.API.Leases(c.Namespace)
	first := map[RunID]string{}
	alive := map[RunID]bool{}
	for waited := range Polling(ctx, time.Second) {
		waiting := false
		for _, r := range runs {
			now, err := fetch(ctx, func() (*coordinationv1.Lease, error) {
				return leases.Get(ctx, (&lease{run: r}).name(), metav1.GetOptions{})
			})
			switch {
			case apierrors.IsNotFound(err):
				alive[r] = false // it ended in good order, or never began
				continue
			case err != nil:
				return nil, fmt.Errorf("look whether run %s is under way: %w", r, withFix(err))
			}
			if first[r] == "" {
				first[r] = now.ResourceVersion
			}
			alive[r] = alive[r] || first[r] != now.ResourceVersion
			waiting = waiting || !alive[r]
		}
		if !waiting || waited > silentFor {
			return alive, nil
		}
	}
	return nil, errors.Join(errors.New("looking which runs are under way was interrupted"), context.Cause(ctx))
}
