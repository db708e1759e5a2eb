package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/client"
)

// The Lease that a run holds while it changes a cluster. There is one in a cluster, whatever namespace its pods are in: what is
// changed is everybody's.
const (
	LeaseName      = "netdelta-changes"
	LeaseNamespace = "kube-system"
)

// Annotations of the Lease: who holds it, and what is changed.
const (
	annotationRun     = "netdelta.dev/run-name"
	annotationHost    = "netdelta.dev/host"
	annotationNetwork = "netdelta.dev/changed-for"
	annotationRestore = "netdelta.dev/restore" // JSON, command lines
)

// A Lease that has not been renewed for leaseLife is of a run that is gone.
const (
	leaseLife    = time.Minute
	leaseRenewal = leaseLife / 4
	leaseRequest = 10 * time.Second
)

// lease keeps others from changing the cluster.
type lease struct {
	api               *client.API
	namespace         string
	run, holder       string
	stop              func() // ends the renewal; nil while the lease is not held
	mu                sync.Mutex
	network, restores string // what is said of the change that is made
	lost              error
}

// take takes the Lease, and renews it from then on. Taken again it says whether it is still held.
func (l *lease) take(ctx context.Context) error {
	if l.stop != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.lost
	}
	if err := l.update(ctx, true); err != nil {
		return err
	}
	renewing, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.renew(renewing)
	}()
	l.stop = func() { cancel(); <-ended }
	return nil
}

// renew says again and again that the run is there. An API server that does not answer for a while is no reason to give up.
func (l *lease) renew(ctx context.Context) {
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := l.update(ctx, false)
		var taken *HeldError
		if errors.As(err, &taken) {
			l.mu.Lock()
			l.lost = err
			l.mu.Unlock()
			return
		}
	}
}

// say notes at the Lease what is changed, nil for nothing: who finds it after a crash knows what to do.
func (l *lease) say(ctx context.Context, r *record) error {
	l.mu.Lock()
	l.network, l.restores = "", ""
	if r != nil {
		lines, err := json.Marshal(r.lines())
		if err != nil {
			l.mu.Unlock()
			return fmt.Errorf("note at the lease %s/%s what is changed: %w", l.namespace, LeaseName, err)
		}
		l.network, l.restores = r.Network, string(lines)
	}
	l.mu.Unlock()
	return l.update(ctx, false)
}

// HeldError says that another run changes the cluster, or has left it changed.
type HeldError struct {
	Run, Host string
	// Network is what the cluster is changed for, "" for nothing. Gone says that the run has not been heard of for a while.
	Network string
	Gone    bool
	Restore []string
	lease   string
}

// Error says what to do.
func (e *HeldError) Error() string {
	who := fmt.Sprintf("run %q on host %q", e.Run, e.Host)
	if !e.Gone {
		return fmt.Sprintf("%s is changing this cluster just now (lease %s): wait until it has ended", who, e.lease)
	}
	return fmt.Sprintf("%s has left this cluster changed as for %s (lease %s), and is gone: run netdelta cleanup there; or restore the cluster by hand and then kubectl delete lease -n %s:\n  %s",
		who, testbed.ChangedFor(e.Network), e.lease, strings.ReplaceAll(e.lease, "/", " "), strings.Join(e.Restore, "\n  "))
}

// Is makes errors.Is(err, testbed.ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == testbed.ErrHeld }

// update writes the Lease as it should be now, as its holder or, at first, to become it.
func (l *lease) update(ctx context.Context, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, leaseRequest)
	defer cancel()
	leases := l.api.Leases(l.namespace)
	found, err := leases.Get(ctx, LeaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && first:
		_, err = leases.Create(ctx, l.filled(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: LeaseName}}), metav1.CreateOptions{})
	case err != nil:
	case holderOf(found) != l.holder && (!first || holds(found)):
		return l.heldBy(found)
	default:
		_, err = leases.Update(ctx, l.filled(found), metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("hold the lease %s/%s, which keeps other runs from changing this cluster: %w", l.namespace, LeaseName, err)
	}
	return nil
}

// filled is the Lease with what this run has to say.
func (l *lease) filled(found *coordinationv1.Lease) *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := found.DeepCopy()
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	next.Labels[kube.LabelManagedBy], next.Labels[kube.LabelRole] = kube.ManagedBy, string(kube.RoleLease)
	next.Annotations = map[string]string{annotationRun: l.run, annotationHost: host}
	if l.network != "" {
		next.Annotations[annotationNetwork], next.Annotations[annotationRestore] = l.network, l.restores
	}
	now, life := metav1.NewMicroTime(time.Now()), int32(leaseLife/time.Second)
	next.Spec.HolderIdentity, next.Spec.RenewTime, next.Spec.LeaseDurationSeconds = &l.holder, &now, &life
	return next
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// holds says that a Lease must be respected: its holder is there, or has left the cluster changed.
func holds(l *coordinationv1.Lease) bool {
	return holderOf(l) != "" && (!expired(l) || l.Annotations[annotationNetwork] != "")
}

func expired(l *coordinationv1.Lease) bool {
	return l.Spec.RenewTime == nil || time.Since(l.Spec.RenewTime.Time) > leaseLife
}

func (l *lease) heldBy(found *coordinationv1.Lease) error {
	e := &HeldError{
		Run: found.Annotations[annotationRun], Host: found.Annotations[annotationHost], Network: found.Annotations[annotationNetwork],
		Gone: expired(found), lease: l.namespace + "/" + LeaseName,
	}
	if json.Unmarshal([]byte(found.Annotations[annotationRestore]), &e.Restore) != nil {
		e.Restore = nil // somebody else wrote it
	}
	return e
}

// release ends the renewal and, if nothing is changed any more, removes the Lease.
func (l *lease) release(ctx context.Context, clean bool) error {
	if l.stop == nil {
		return nil
	}
	l.stop()
	l.stop = nil
	if !clean {
		return nil
	}
	return l.drop(ctx)
}

// drop removes the Lease if it is this holder's.
func (l *lease) drop(ctx context.Context) error {
	leases := l.api.Leases(l.namespace)
	found, err := leases.Get(ctx, LeaseName, metav1.GetOptions{})
	if err == nil && holderOf(found) == l.holder {
		err = leases.Delete(ctx, LeaseName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion}})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("give back the lease %s/%s: %w; it ends by itself within %v", l.namespace, LeaseName, err, leaseLife)
	}
	return nil
}
