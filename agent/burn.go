package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Burning is how an agent keeps processors busy, as a neighbour of those that are measured: on each processor a thread works
// and sleeps in turns. One that is named twice has two threads.
type Burning struct {
	CPUs []int `json:"cpus"`
	// Seed draws how long each turn is: from half of Turn to one and a half, so that the processor is taken half of the time
	// and nobody falls into step with it. The same seed gives the same turns.
	Seed uint64        `json:"seed"`
	Turn time.Duration `json:"turn"`
	// Longest ends it when nobody else does.
	Longest time.Duration `json:"longest"`
}

// burnDeadline bounds the calls that begin and end it: threads on processors that others use too may take their time.
const burnDeadline = 10 * time.Second

// Burn begins to keep processors busy and returns when it has begun.
func (a *Agent) Burn(ctx context.Context, b Burning) error {
	_, err := invoke[struct{}](ctx, a, opBurn, b, burnDeadline)
	return err
}

// Rest ends what Burn began and returns when the processors are left alone. Without a Burn before it does nothing.
func (a *Agent) Rest(ctx context.Context) error {
	_, err := invoke[struct{}](ctx, a, opRest, struct{}{}, burnDeadline)
	return err
}

// burners are an agent's threads that burn, by their number and processor. They are made when they are first needed.
type burners struct {
	threads map[seat]chan Burning
	resting atomic.Bool
	busy    sync.WaitGroup
}

// seat is where a thread burns.
type seat struct{ number, cpu int }

// burn has the threads of the processors begin.
func (s *burners) burn(b Burning) error {
	if b.Turn <= 0 || len(b.CPUs) == 0 {
		return errors.New("burning takes processors, and turns that last")
	}
	s.rest()
	s.resting.Store(false)
	for number, cpu := range b.CPUs {
		at := seat{number, cpu}
		if s.threads[at] == nil {
			work, err := s.thread(at)
			if err != nil {
				s.rest()
				return err
			}
			if s.threads == nil {
				s.threads = map[seat]chan Burning{}
			}
			s.threads[at] = work
		}
		s.busy.Add(1)
		s.threads[at] <- b
	}
	return nil
}

// rest has all threads end their turns and waits for it.
func (s *burners) rest() {
	s.resting.Store(true)
	s.busy.Wait()
}

// thread makes a thread on a processor.
func (s *burners) thread(at seat) (chan Burning, error) {
	work, ready := make(chan Burning), make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread stays on its processor
		var set unix.CPUSet
		set.Set(at.cpu)
		err := unix.SchedSetaffinity(0, &set)
		ready <- err
		if err != nil {
			return
		}
		for b := range work {
			s.turns(b, at)
			s.busy.Done()
		}
	}()
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("keep a thread on processor %d: %w", at.cpu, err)
	}
	return work, nil
}

// turns works and sleeps until it is told to rest.
func (s *burners) turns(b Burning, at seat) {
	rng := rand.New(rand.NewPCG(b.Seed, uint64(at.number)))
	turn := func() time.Duration { return b.Turn/2 + time.Duration(rng.Int64N(int64(b.Turn)+1)) }
	for end := time.Now().Add(b.Longest); !s.resting.Load() && time.Now().Before(end); {
		for until := time.Now().Add(turn()); time.Now().Before(until); {
			if s.resting.Load() {
				return
			}
		}
		nap := unix.NsecToTimespec(turn().Nanoseconds())
		_ = unix.Nanosleep(&nap, nil) // a nap that is cut short is a nap
	}
}
