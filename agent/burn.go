package agent

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
)

// Burning is how an agent keeps processors busy, as a neighbour of those that are measured: on each processor a thread works
// and sleeps in turns. One that is named twice has two threads.
type Burning struct {
	CPUs []int `json:"cpus"`
	// Seed draws how long each turn is: from half of Turn to one and a half, so that the processor is taken half of the time
	// and no program falls into step with it. The same seed gives the same turns.
	Seed uint64        `json:"seed"`
	Turn time.Duration `json:"turn"`
	// Longest ends it when no Rest does.
	Longest time.Duration `json:"longest"`
}

// burners are an agent's threads that burn.
type burners struct {
	resting atomic.Bool
	busy    sync.WaitGroup
}

// burn begins threads on the processors, and returns when each is where it belongs.
func (s *burners) burn(b Burning) error {
	if b.Turn <= 0 || len(b.CPUs) == 0 {
		return errors.New("burning takes processors, and turns that last")
	}
	s.rest()
	s.resting.Store(false)
	ready := make(chan error, len(b.CPUs))
	for number, cpu := range b.CPUs {
		s.busy.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its turns
			if err := native.Pin(cpu); err != nil {
				ready <- err
				return
			}
			ready <- nil
			s.turns(b, number)
		})
	}
	var err error
	for range b.CPUs {
		err = errors.Join(err, <-ready)
	}
	if err != nil {
		s.rest()
	}
	return err
}

// rest has all threads end their turns and waits for it.
func (s *burners) rest() {
	s.resting.Store(true)
	s.busy.Wait()
}

// turns works and sleeps until it is told to rest.
func (s *burners) turns(b Burning, number int) {
	rng := rand.New(rand.NewPCG(b.Seed, uint64(number)))
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
