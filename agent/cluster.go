package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/result"
	"netdelta/workload"
)

// late is how much longer than it may take an agent is waited for: it gives up by itself, and then has more to say than one
// that is killed.
const late = 10 * time.Second

// startDeadline is how long an agent is waited for that starts an end of a workload; 0 is one of netdelta's own.
func startDeadline(within time.Duration) time.Duration {
	if within <= 0 {
		return dialDeadline
	}
	return within + late
}

// ServeCluster starts the daemons of one pod of a workload's cluster, within a time, and returns their session.
func (a *Agent) ServeCluster(ctx context.Context, w string, p result.Params, at workload.Member, within time.Duration) (int, error) {
	return invoke[int](ctx, a, opServeCluster, clusterArgs{w, p, at, within}, within+late)
}

// DialCluster opens a client of a workload's cluster, within a time, and returns its session.
func (a *Agent) DialCluster(ctx context.Context, w string, p result.Params, at workload.Member, within time.Duration) (int, error) {
	return invoke[int](ctx, a, opDialCluster, clusterArgs{w, p, at, within}, within+late)
}

// Health is how the daemons of a server's session are. Those that do not say so within the time are unwell; a server without
// daemons is well.
func (a *Agent) Health(ctx context.Context, session int, within time.Duration) (workload.Health, error) {
	return invoke[workload.Health](ctx, a, opHealth, patientArgs{session, within}, within+late)
}

// Restart starts the daemons of a server's session again that have ended, or makes them whole again, within a time.
func (a *Agent) Restart(ctx context.Context, session int, within time.Duration) error {
	_, err := invoke[struct{}](ctx, a, opRestart, patientArgs{session, within}, within+late)
	return err
}

type clusterArgs struct {
	Workload string          `json:"workload"`
	Params   result.Params   `json:"params"`
	At       workload.Member `json:"at"`
	Within   time.Duration   `json:"within"`
}

type patientArgs struct {
	Session int           `json:"session"`
	Within  time.Duration `json:"within"`
}

// within is a context that ends after a time, or with the server where none is given.
func (s *server) within(d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return s.ctx, func() {}
	}
	return context.WithTimeout(s.ctx, d)
}

// cluster is the cluster of a workload.
func (s *server) cluster(a clusterArgs) (*workload.Cluster, error) {
	w, err := s.find(a.Workload)
	if err != nil {
		return nil, err
	}
	c := w.Demands(a.Params).Cluster
	if c == nil {
		return nil, fmt.Errorf("workload %s has no cluster with these parameters", a.Workload)
	}
	return c, nil
}

func (s *server) serveCluster(a clusterArgs) (int, error) {
	c, err := s.cluster(a)
	if err != nil {
		return 0, err
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	srv, err := c.Serve(ctx, a.Params, a.At)
	if err != nil {
		return 0, err
	}
	return s.add(session{server: srv}), nil
}

func (s *server) dialCluster(a clusterArgs) (int, error) {
	c, err := s.cluster(a)
	if err != nil {
		return 0, err
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	client, err := c.Dial(ctx, a.Params, a.At)
	if err != nil {
		return 0, err
	}
	return s.add(session{client: client}), nil
}

// watched is a server of daemons; nil for one that has none.
func (s *server) watched(id int) (workload.DaemonServer, error) {
	e := s.sessions[id]
	if e.server == nil {
		return nil, fmt.Errorf("session %d is not a server", id)
	}
	w, _ := e.server.(workload.DaemonServer)
	return w, nil
}

func (s *server) health(a patientArgs) (workload.Health, error) {
	w, err := s.watched(a.Session)
	if w == nil {
		return workload.Health{}, err
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	return w.Health(ctx), nil
}

func (s *server) restart(a patientArgs) (struct{}, error) {
	w, err := s.watched(a.Session)
	if w == nil {
		return struct{}{}, errors.Join(err, errors.New("there are no daemons to restart"))
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	return struct{}{}, w.Restart(ctx)
}
