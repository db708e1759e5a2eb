package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"netdelta/agent"
)

// agents are those of a seat that it has by now.
func (s *seat) agents() []*agent.Agent {
	var all []*agent.Agent
	for _, a := range []*agent.Agent{s.client, s.server} {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

// loss is what became of a seat's agents, nil while they are there.
func (s *seat) loss() error {
	for _, a := range s.agents() {
		if !a.Alive() {
			_, err := a.Counters(context.Background()) // of one that is gone it is known at once
			return err
		}
	}
	return nil
}

// explain says of seats that failed far away what became of their pods. A connection tells at once that its other end is lost, and the
// cluster later: who is asked now answers, or turns out to be gone.
func explain(ctx context.Context, seats []*seat) {
	var all sync.WaitGroup
	for _, s := range seats {
		if s.failed == nil || !s.far || errors.Is(s.failed, agent.ErrGone) {
			continue
		}
		all.Go(func() {
			for _, a := range s.agents() {
				if _, err := a.Counters(ctx); errors.Is(err, agent.ErrGone) {
					s.failed = fmt.Errorf("%w; %w", s.failed, err)
					return
				}
			}
		})
	}
	all.Wait()
}
