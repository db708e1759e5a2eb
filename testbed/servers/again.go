package servers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/testbed"
	"netdelta/testbed/servers/server"
)

// Return is how long a machine that was lost may take to be there again unless it is said otherwise: as long as a server takes to start.
const Return = 5 * time.Minute

// between is how long it takes from one try to reach a machine to the next.
const between = time.Second

// errLost is the end of a conversation that was to go on.
var errLost = errors.New("the connection ended")

// Open implements testbed.Provider. Machines that were lost since are reached again first, whether their connection was cut or they have
// started again. Testbeds that were open there stay lost.
func (s *Servers) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if err := s.reachLost(ctx); err != nil {
		return nil, err
	}
	opened, err := s.Driver.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return noted{opened, s}, nil
}

// reachLost reaches all machines again that were lost, at once.
func (s *Servers) reachLost(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := make([]error, len(s.machines))
	var group sync.WaitGroup
	for i, m := range s.machines {
		select {
		case <-m.Done():
			group.Go(func() { failed[i] = s.reachAgain(ctx, i) })
		default:
		}
	}
	group.Wait()
	for i, l := range s.links {
		if note := l.returned; note != "" && failed[i] == nil {
			s.notes = append(s.notes, note)
			l.returned = ""
		}
	}
	return errors.Join(failed...)
}

// reachAgain makes a node of a machine that was lost. What was there ends within the time of its silence at the latest, which is waited
// for; what a supervisor left that died with its machine is removed.
func (s *Servers) reachAgain(ctx context.Context, i int) error {
	if s.gone[i] != nil {
		return s.gone[i]
	}
	at, began := s.options.Machines[i], time.Now()
	lost := s.links[i].Fail("keep the connection to", errLost)
	var cleaned error
	for {
		c, m, err := node(ctx, at, s.order(i))
		if err == nil {
			c.returned = fmt.Sprintf("node%d was lost while builds were under way, which failed, and was there again after %s (%v)", i, time.Since(began).Round(time.Second), lost)
			s.links[i], s.machines[i] = c, m
			s.Replace(i, m)
			s.watch(m)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > s.options.Return {
			s.gone[i] = fmt.Errorf("%w; it was not there again within %s: %w", lost, s.options.Return, errors.Join(err, cleaned))
			return s.gone[i]
		}
		var done server.Cleaned
		cleaned = once(ctx, at, server.Order{Do: server.Clean}, &done)
		select {
		case <-time.After(between):
		case <-ctx.Done():
		}
	}
}

// noted is a testbed whose notes say which machines were lost and came back.
type noted struct {
	testbed.Testbed
	servers *Servers
}

// Instruments implements testbed.Testbed.
func (n noted) Instruments() testbed.Instruments {
	all := n.Testbed.Instruments()
	all.Notes = func() []string {
		n.servers.mu.Lock()
		defer n.servers.mu.Unlock()
		return n.servers.notes
	}
	return all
}
