package survey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The API server's clock is read from the Date of its answers, which is cut to a second. Samples spread over a second narrow it to
// about the distance between two of them.
const (
	clockSamples  = 8
	clockDistance = time.Second / clockSamples
)

// readClock compares the API server's clock with this machine's.
func (l *looker) readClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	offset, err := l.compareClocks(ctx)
	if err != nil {
		l.gap("the API server's clock", "", err.Error())
		return
	}
	l.survey.Clock = &offset
}

func (l *looker) compareClocks(ctx context.Context) (Offset, error) {
	client, err := rest.HTTPClientFor(l.cluster.REST)
	if err != nil {
		return Offset{}, fmt.Errorf("prepare a request: %w", err)
	}
	url := l.cluster.API.REST.Get().AbsPath("/version").URL().String()
	var bounds span
	for i := range clockSamples {
		if i > 0 {
			select {
			case <-ctx.Done():
				return Offset{}, ctx.Err()
			case <-time.After(clockDistance):
			}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return Offset{}, err
		}
		sent := time.Now()
		answer, err := client.Do(request)
		if err != nil {
			return Offset{}, err
		}
		received := time.Now()
		_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return Offset{}, err
		}
		date, err := http.ParseTime(answer.Header.Get("Date"))
		if err != nil {
			return Offset{}, fmt.Errorf("its answers have no date: %w", err)
		}
		// Some time between sending and receiving, its clock stood within the second that it wrote.
		bounds.narrow(date.Sub(received), date.Add(time.Second).Sub(sent))
	}
	return bounds.offset("the dates of its answers")
}

// span is where an offset can be: narrowed by each sample.
type span struct {
	low, high time.Duration
	any       bool
}

func (s *span) narrow(low, high time.Duration) {
	if !s.any {
		*s = span{low, high, true}
		return
	}
	s.low, s.high = max(s.low, low), min(s.high, high)
}

// offset is the span as an answer. Samples that contradict each other are no answer: a clock was set between them.
func (s *span) offset(by string) (Offset, error) {
	if !s.any || s.low > s.high {
		return Offset{}, errors.New("its dates contradict each other: a clock was set meanwhile, or several servers with different clocks answer")
	}
	return Offset{Low: s.low, High: s.high, By: by}, nil
}

// writeDelay is how long it takes, at most, from when a kubelet reads its clock to when the API server notes the time of its
// request, where neither is in trouble.
const writeDelay = time.Second

// heartbeat compares a node's clock with the API server's: what the kubelet wrote as the time of its report with when the API server
// says that it was written. Both are cut to seconds.
func heartbeat(n corev1.Node) *Offset {
	var wrote metav1.Time
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.LastHeartbeatTime.After(wrote.Time) {
			wrote = c.LastHeartbeatTime
		}
	}
	noted := noted(n.ManagedFields, "kubelet")
	if wrote.IsZero() || noted.IsZero() {
		return nil
	}
	ahead := wrote.Sub(noted.Time)
	return &Offset{Low: ahead - time.Second, High: ahead + time.Second + writeDelay, By: "the time of its last report"}
}

// noted is when the API server last noted a change by a manager of fields.
func noted(fields []metav1.ManagedFieldsEntry, manager string) metav1.Time {
	var last metav1.Time
	for _, f := range fields {
		if f.Manager == manager && f.Time != nil && f.Time.After(last.Time) {
			last = *f.Time
		}
	}
	return last
}

// renewal compares a node's clock with the API server's by the lease that its kubelet renews every ten seconds. The kubelet's time is
// to the microsecond, the API server's cut to a second.
func renewal(lease coordinationv1.Lease) *Offset {
	noted := noted(lease.ManagedFields, "kubelet")
	if lease.Spec.RenewTime.IsZero() || noted.IsZero() {
		return nil
	}
	ahead := lease.Spec.RenewTime.Sub(noted.Time)
	return &Offset{Low: ahead - time.Second, High: ahead + writeDelay, By: "its lease"}
}

// readLeases compares the clocks of nodes with the API server's. Where leases can't be listed, the nodes' reports, which are older,
// have to do.
func (l *looker) readLeases(ctx context.Context) {
	if len(l.survey.Nodes) == 0 {
		return
	}
	l.ask(ctx, "the leases of nodes: their clocks are known from their last reports only", "list leases.coordination.k8s.io in "+leaseNamespace, func(ctx context.Context) error {
		return each(ctx, l.cluster.API.Leases(leaseNamespace), metav1.ListOptions{}, func(lease *coordinationv1.Lease) {
			for i := range l.survey.Nodes {
				if offset := renewal(*lease); l.survey.Nodes[i].Name == lease.Name && offset != nil {
					l.survey.Nodes[i].Clock = offset
				}
			}
		})
	})
}
