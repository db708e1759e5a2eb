package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
