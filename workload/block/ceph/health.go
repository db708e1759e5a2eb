package ceph

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"netdelta/result"
	"netdelta/workload"
)

// Health implements workload.DaemonServer. Daemons are asked by their admin sockets, so that the answer takes no network: an OSD says
// whether the cluster's map has it up, and how the placement groups are that it leads.
func (s *server) Health(ctx context.Context) workload.Health {
	var h workload.Health
	var ails []string
	for _, name := range s.names() {
		d := s.daemon(name)
		service := result.Service{Name: d.Name(), Version: s.version}
		if err := d.Err(); err != nil {
			h.Ended = true
			ails = append(ails, err.Error())
		} else {
			service.Memory = d.Memory()
			what, err := s.ailing(ctx, name)
			if err != nil {
				what = err.Error()
			}
			if what != "" {
				ails = append(ails, what)
			}
		}
		h.Services = append(h.Services, service)
	}
	if len(ails) > 0 {
		h.Unwell = "ceph not healthy: " + strings.Join(ails, "; ")
	}
	return h
}

// ailing says what ails a daemon that runs, "" if nothing does.
func (s *server) ailing(ctx context.Context, name string) (string, error) {
	if name == monitor {
		return s.monitorLeads(ctx)
	}
	if what, err := s.osdUp(ctx); what != "" || err != nil {
		return what, err
	}
	return s.groupsClean(ctx)
}

// monitorLeads is "" when the monitor is in charge.
func (s *server) monitorLeads(ctx context.Context) (string, error) {
	var status struct {
		State string `json:"state"`
	}
	if err := ask(ctx, s.home, monitor, "mon_status", &status); err != nil {
		return "", err
	}
	if status.State != "leader" {
		return fmt.Sprintf("ceph-%s is %s, not leader", monitor, status.State), nil
	}
	return "", nil
}

// osdUp is "" when the pod's OSD takes part.
func (s *server) osdUp(ctx context.Context) (string, error) {
	var status struct {
		State string `json:"state"`
	}
	if err := ask(ctx, s.home, osd(s.at.Pod), "status", &status); err != nil {
		return "", err
	}
	if status.State != "active" {
		return fmt.Sprintf("ceph-%s is %s, not active", osd(s.at.Pod), status.State), nil
	}
	return "", nil
}

// groupsClean is "" when all placement groups that the pod's OSD leads have all their copies.
func (s *server) groupsClean(ctx context.Context) (string, error) {
	var history struct {
		Groups []group `json:"pgs"`
	}
	if err := ask(ctx, s.home, osd(s.at.Pod), "dump_pgstate_history", &history); err != nil {
		return "", err
	}
	unclean, states := 0, []string{}
	for _, g := range history.Groups {
		if !g.unclean() {
			continue
		}
		unclean++
		if !slices.Contains(states, g.State) {
			states = append(states, g.State)
		}
	}
	if unclean == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d of %d placement groups of ceph-%s are not clean (%s)",
		unclean, len(history.Groups), osd(s.at.Pod), strings.Join(states, ", ")), nil
}

// group is a placement group, with its state as a path: Started/Primary/Active/Clean.
type group struct {
	ID    string `json:"pg"`
	State string `json:"currently"`
}

// unclean says that the OSD leads a group that lacks a copy, or that it is not settled who leads it.
func (g group) unclean() bool {
	return g.State != "Started/Primary/Active/Clean" && !strings.HasPrefix(g.State, "Started/ReplicaActive")
}

// Restart implements workload.DaemonServer.
func (s *server) Restart(ctx context.Context) error {
	for _, name := range s.names() {
		if s.daemon(name).Err() == nil {
			continue
		}
		if err := s.launch(name); err != nil {
			return fmt.Errorf("restart ceph-%s: %w", name, err)
		}
	}
	for _, name := range s.names() {
		err := s.await(ctx, name, func(ctx context.Context) (string, error) { return s.ailing(ctx, name) })
		if err != nil {
			return fmt.Errorf("restart ceph-%s: %w", name, err)
		}
	}
	return nil
}
