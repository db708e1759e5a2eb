package endpoint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/experiment/plan"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
	"netdelta/workload"
)

// How long daemons may take to say how they are, and to start again.
const (
	healthWithin  = 5 * time.Second
	restartWithin = time.Minute
)

// Service is the daemons in one pod that serve one cell or, in a cluster, several.
type Service struct {
	Agent    *agent.Agent
	Session  int
	restarts int
	health   workload.Health // as last asked for
}

// Check asks how the daemons are. Without an answer from their agent they are unwell.
func (s *Service) Check(ctx context.Context) {
	h, err := s.Agent.Health(ctx, s.Session, healthWithin)
	if err != nil {
		h = workload.Health{Unwell: fmt.Sprintf("its health is unknown: %v", err), Services: s.health.Services}
	}
	s.health = h
}

// Restart starts daemons again, or repairs those that run.
func (s *Service) Restart(ctx context.Context) error {
	s.restarts++
	return s.Agent.Restart(ctx, s.Session, restartWithin)
}

// Records are the daemons as last checked, for a trial.
func (s *Service) Records() []result.Service {
	all := slices.Clone(s.health.Services)
	for i := range all {
		all[i].Pod, all[i].Restarts = s.Agent.Pod().Name(), s.restarts
	}
	return all
}

// lostError says that a pod was lost, and its agent with it.
type lostError struct {
	pod    testbed.Pod
	reason string // in the words of what runs the pod, as far as it tells
}

func (e *lostError) Error() string { return fmt.Sprintf("%s was lost: %s", where(e.pod), e.reason) }
func (e *lostError) Unwrap() error { return rpc.ErrGone }

// Lost says that the agent's pod was lost, on which node and why, if the agent has ended (rpc.ErrGone); it is nil of one that lives.
func Lost(a *agent.Agent) error {
	if a.Alive() {
		return nil
	}
	return &lostError{a.Pod(), cmp.Or(a.Process().FailureReason(), "its agent has ended")}
}

// where names a pod and its node.
func where(p testbed.Pod) string { return fmt.Sprintf("pod %s on node %s", p.Name(), p.Node()) }

// check asks all services at once how they are.
func check(ctx context.Context, services []*Service) (ailment string, ended bool) {
	var wg sync.WaitGroup
	for _, s := range services {
		wg.Go(func() { s.Check(ctx) })
	}
	wg.Wait()
	var ailments []string
	for _, s := range services {
		if s.health.Unwell != "" {
			ailments = append(ailments, where(s.Agent.Pod())+": "+s.health.Unwell)
			ended = ended || s.health.Ended
		}
	}
	return strings.Join(ailments, "; "), ended
}

// Totals are what the servers of a cell saw: all of a single server, else the slowest disk and the replication with most samples.
func Totals(ctx context.Context, services []*Service) (engine.Totals, error) {
	var sum engine.Totals
	for _, s := range services {
		t, err := s.Agent.Totals(ctx, s.Session)
		switch {
		case err != nil:
			return sum, err
		case len(services) == 1:
			return t, nil
		}
		if t.Disk != nil && (sum.Disk == nil || t.Disk.Rate < sum.Disk.Rate) {
			sum.Disk = t.Disk
		}
		if t.Replication != nil && (sum.Replication == nil || t.Replication.Samples > sum.Replication.Samples) {
			sum.Replication = t.Replication
		}
	}
	return sum, nil
}

// Health keeps account of the services of a run, by what they serve (Key). It is safe for concurrent use.
type Health struct {
	mu      sync.Mutex
	deaths  map[string]int
	givenUp map[string]string // why
	notes   []string
}

// NewHealth returns the account of a run that begins.
func NewHealth() *Health { return &Health{deaths: map[string]int{}, givenUp: map[string]string{}} }

// Key names what services serve: a workload with the parameters that make its servers. What fails in one state of a cluster may do well in
// others.
func Key(c result.Cell, d workload.Demand) string {
	if d.Cluster == nil {
		return plan.Describe(c.Workload, c.Params.Load())
	}
	key := c.Workload + " (" + d.Cluster.Key + ")"
	if c.State != "" {
		key += ", " + c.State
	}
	return key
}

// Ended counts that daemons have ended. After the first time they should be restarted; after the second they are given up.
func (h *Health) Ended(key, ailment string) (restart bool) {
	h.mu.Lock()
	h.deaths[key]++
	again := h.deaths[key] > 1
	h.mu.Unlock()
	if again {
		h.giveUp(key, "its services ended for the second time: "+ailment)
		return false
	}
	h.NoteAilment("a service of %s ended and was started again; what it served meanwhile does not count: %s", ailment, key)
	return true
}

// giveUp excludes services from the rest of the run.
func (h *Health) giveUp(key, why string) {
	h.mu.Lock()
	first := h.givenUp[key] == ""
	if first {
		h.givenUp[key] = why
	}
	h.mu.Unlock()
	if first {
		h.NoteAilment("%s was left out of the rest of the run: %s", why, key)
	}
}

// GivenUp says whether services were given up.
func (h *Health) GivenUp(key string) bool { return h.whyGivenUp(key) != "" }

func (h *Health) whyGivenUp(key string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.givenUp[key]
}

// Losses is how many services were given up.
func (h *Health) Losses() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.givenUp)
}

// Notes are sentences on what happened, each once.
func (h *Health) Notes() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.notes
}

// Note adds a sentence, once.
func (h *Health) Note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(h.notes, text) {
		h.notes = append(h.notes, text)
	}
}

// maxAilment is how many bytes of an ailment a note has; the trials that it spoiled have all of it.
const maxAilment = 240

// NoteAilment adds a sentence, once, that ends with an ailment.
func (h *Health) NoteAilment(format, ailment string, args ...any) {
	ailment = strings.Join(strings.Fields(ailment), " ")
	if len(ailment) > maxAilment {
		ailment = strings.ToValidUTF8(ailment[:maxAilment], "") + " [...]"
	}
	h.Note(format, append(args, ailment)...)
}
