package experiment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/agent"
	"netdelta/experiment/plan"
	"netdelta/result"
	"netdelta/workload"
)

// How long services may take: a server with programs, and the pods of a cluster, to start; a client to open; daemons to say how they
// are, and to start again.
const (
	serveWithin   = time.Minute
	clusterWithin = 2 * time.Minute
	dialWithin    = time.Minute
	healthWithin  = 5 * time.Second
	restartWithin = time.Minute
)

// Unwell is how the reason begins for which a burst is left out during which a service was unwell; what ailed it follows.
const Unwell = "service unwell: "

// service is the daemons of one pod that serve one cell or, in a cluster, many.
type service struct {
	agent    *agent.Agent
	session  int
	restarts int
	health   workload.Health // as it was when it was last asked for
}

// check asks how the daemons are. An agent that does not answer any more has none that are well.
func (s *service) check(ctx context.Context) {
	h, err := s.agent.Health(ctx, s.session, healthWithin)
	if err != nil {
		h = workload.Health{Unwell: fmt.Sprintf("nobody can say how it is: %v", err), Services: s.health.Services}
	}
	s.health = h
}

// restart starts daemons again, or makes them whole.
func (s *service) restart(ctx context.Context) error {
	s.restarts++
	return s.agent.Restart(ctx, s.session, restartWithin)
}

// records are the daemons as a trial has them.
func (s *service) records() []result.Service {
	all := slices.Clone(s.health.Services)
	for i := range all {
		all[i].Pod, all[i].Restarts = s.agent.Pod().Name(), s.restarts
	}
	return all
}

// ailment says what ails services, "" if they are well, and whether a daemon has ended.
func ailment(services []*service) (words string, ended bool) {
	var said []string
	for _, s := range services {
		if s.health.Unwell != "" {
			said = append(said, s.health.Unwell)
			ended = ended || s.health.Ended
		}
	}
	return strings.Join(said, "; "), ended
}

// serverTotals are what the servers of a cell saw, together: of what lies behind them, that of the slowest disk and of the server that
// replicated most.
func serverTotals(ctx context.Context, services []*service) (workload.Totals, error) {
	var sum workload.Totals
	for _, s := range services {
		t, err := s.agent.Totals(ctx, s.session)
		if err != nil {
			return sum, err
		}
		if t.Disk != nil && (sum.Disk == nil || t.Disk.Rate < sum.Disk.Rate) {
			sum.Disk = t.Disk
		}
		if t.Replication != nil && (sum.Replication == nil || t.Replication.Samples > sum.Replication.Samples) {
			sum.Replication = t.Replication
		}
		if len(services) == 1 {
			sum = t
		}
	}
	return sum, nil
}

// served says whether the seat has daemons that can be unwell.
func (s *seat) served() bool { return len(s.demand.Programs) > 0 && len(s.services) > 0 }

// serves says whether cells have servers with programs.
func (st *stage) serves(cells []result.Cell) bool {
	return slices.ContainsFunc(cells, func(c result.Cell) bool { return len(demandOf(st.workloads, c).Programs) > 0 })
}

// ailment asks the seat's services how they are.
func (s *seat) ailment(ctx context.Context) (words string, ended bool) {
	if !s.served() {
		return "", false
	}
	if s.cluster != nil {
		return s.cluster.check(ctx)
	}
	s.services[0].check(ctx)
	return ailment(s.services)
}

// records are the seat's services as its trial has them. Those of a cluster were asked when the trial was over.
func (s *seat) records(ctx context.Context) []result.Service {
	if !s.served() {
		return nil
	}
	var all []result.Service
	for _, m := range s.services {
		if s.cluster == nil {
			m.check(ctx)
		}
		all = append(all, m.records()...)
	}
	return all
}

// spoil marks all bursts of the seat, and moves them behind those rounds that are measured again in their place.
func (s *seat) spoil(words string) {
	for i := range s.bursts.Round {
		if s.bursts.Disturbed[i] == "" {
			s.bursts.Disturbed[i] = Unwell + words
		}
		s.bursts.Round[i] += s.pace.visit
	}
}

// reopen opens the client's connection anew.
func (s *seat) reopen(ctx context.Context) error {
	_ = s.client.Drop(ctx, s.session) // it is of no more use, whatever it says
	s.disturbed = false
	return s.redial(ctx)
}

// ward knows what has become of the services of a run, by what they serve.
type ward struct {
	deaths map[string]int
	lost   map[string]string // why, of those that were given up
	notes  []string
}

// charge is what services serve, for the ward: a workload with the parameters that make its servers.
func charge(c result.Cell, d workload.Demand) string {
	if d.Cluster != nil {
		return c.Workload + " (" + d.Cluster.Key + ")"
	}
	return plan.Describe(c.Workload, c.Params.Load())
}

// died counts that daemons have ended. The first time they are started again; it says when that was it.
func (w *ward) died(of, words string) (again bool) {
	if w.deaths == nil {
		w.deaths = map[string]int{}
	}
	w.deaths[of]++
	if w.deaths[of] > 1 {
		w.lose(of, "its services ended for the second time: "+words)
		return false
	}
	w.note("a service of %s ended and was started again; what it served meanwhile does not count: %s", of, brief(words))
	return true
}

// lose gives a workload up.
func (w *ward) lose(of, why string) {
	if w.lost == nil {
		w.lost = map[string]string{}
	}
	if w.lost[of] == "" {
		w.lost[of] = cmp.Or(why, "its services are of no use")
		w.note("%s was left out of the rest of the run: %s", of, brief(w.lost[of]))
	}
}

// briefly is how many bytes of what ails a service a note has; the trials that it spoiled have all of it.
const briefly = 240

// brief is the beginning of what ails a service.
func brief(words string) string {
	words = strings.Join(strings.Fields(words), " ")
	if len(words) <= briefly {
		return words
	}
	return strings.ToValidUTF8(words[:briefly], "") + " [...]"
}

// note says something once.
func (w *ward) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}
