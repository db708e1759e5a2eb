package record

import (
	"errors"
	"fmt"
	"time"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/workload"
)

// Load is one load that a strategy puts on several networks.
type Load struct {
	// Program is how to start the agent in pods.
	Program  agent.Program
	Workload workload.Workload
	Params   result.Params
	Networks []string
	// Builds is how often everything is set up anew.
	Builds int
	// Burst is how long is measured each time, after Warmup.
	Burst, Warmup time.Duration
	Seed          uint64
	// Log is told what happens, in lines without an end; it may be nil.
	Log func(line string)
}

// CheckLoad says what is wrong with a load. Its servers and clients must be netdelta's own.
func (l Load) CheckLoad() error {
	switch w := l.Workload; {
	case len(l.Networks) == 0:
		return errors.New("name a network to measure")
	case l.Builds < 1:
		return fmt.Errorf("%d builds: need at least 1", l.Builds)
	case l.Burst <= 0 || l.Warmup < 0:
		return fmt.Errorf("bursts of %v after %v: need a burst that lasts", l.Burst, l.Warmup)
	case w.Serve == nil || w.Dial == nil || len(w.Demands(l.Params).Programs) > 0:
		return fmt.Errorf("workload %s needs programs of others, which are not in each pod: take tcp-rr, udp-rr, tcp-stream or udp-stream", w.Name)
	case w.Check != nil:
		return w.Check(l.Params)
	}
	return nil
}

// BuildsOf are the builds of the load that a record gets.
func (l Load) BuildsOf(r *Record) Builds {
	return Builds{Record: r, Count: l.Builds, Seed: l.Seed, Log: l.Log}
}
