package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/workload"
)

// sickly is a server of daemons that are unwell until they are restarted.
type sickly struct {
	fakeServer
	well bool
}

func (s *sickly) Health(context.Context) workload.Health {
	h := workload.Health{Services: []result.Service{{Name: "daemon", Version: "1"}}}
	if !s.well {
		h.Unwell, h.Ended = "daemon: killed", true
	}
	return h
}

func (s *sickly) Restart(context.Context) error { s.well = true; return nil }

// sicklyWorkload has a cluster whose second pod never starts.
func sicklyWorkload() workload.Workload {
	return workload.Workload{Name: "sickly", Demand: func(result.Params) workload.Demand {
		return workload.Demand{Cluster: &workload.Cluster{
			Key: "sickly", Pods: 2,
			Serve: func(ctx context.Context, _ result.Params, at workload.Member) (engine.Server, error) {
				if at.Pod > 0 {
					<-ctx.Done()
					return nil, errors.New("daemon is not ready: no such file")
				}
				return &sickly{}, nil
			},
			Dial: func(_ context.Context, _ result.Params, at workload.Member) (engine.Client, error) {
				if at.Pod != -1 {
					return nil, errors.New("not the client's place")
				}
				return &fakeClient{burst: func() error { return nil }}, nil
			},
		}}
	}}
}

func TestCluster(t *testing.T) {
	a := start(t)
	srv, err := a.ServeCluster(t.Context(), "sickly", result.Params{}, workload.Member{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.ServeCluster(t.Context(), "sickly", result.Params{}, workload.Member{Pod: 1}, 10*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no such file") || !a.Alive() {
		t.Errorf("a pod that does not start in time: %v, and the agent lives: %v", err, a.Alive())
	}
	if _, err := a.DialCluster(t.Context(), "sickly", result.Params{}, workload.Member{Pod: -1}, time.Minute); err != nil {
		t.Error(err)
	}
	h, err := a.Health(t.Context(), srv, time.Minute)
	if err != nil || h.Unwell != "daemon: killed" || !h.Ended || len(h.Services) != 1 {
		t.Errorf("health %+v, %v", h, err)
	}
	if err := a.Restart(t.Context(), srv, time.Minute); err != nil {
		t.Error(err)
	}
	if h, err := a.Health(t.Context(), srv, time.Minute); err != nil || h.Unwell != "" {
		t.Errorf("health after a restart %+v, %v", h, err)
	}
	if _, err := a.Serve(t.Context(), "sickly", result.Params{}, local(), -1); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("serving a cluster's workload alone: %v", err)
	}
	if _, err := a.ServeCluster(t.Context(), "steady", result.Params{}, workload.Member{}, time.Minute); err == nil {
		t.Error("a workload without a cluster was served as one")
	}
}

// A server without daemons is well, and has nothing to restart.
func TestHealthWithoutDaemons(t *testing.T) {
	a := start(t)
	srv, err := a.ServeWithin(t.Context(), "steady", result.Params{}, local(), -1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if h, err := a.Health(t.Context(), srv, time.Minute); err != nil || h.Unwell != "" {
		t.Errorf("health %+v, %v", h, err)
	}
	if err := a.Restart(t.Context(), srv, time.Minute); err == nil {
		t.Error("a server without daemons was restarted")
	}
	if _, err := a.Health(t.Context(), dial(t, a, "steady"), time.Minute); err == nil {
		t.Error("a client has a health")
	}
}
