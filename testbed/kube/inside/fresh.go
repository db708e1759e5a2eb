package inside

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"time"

	"netdelta/internal/clock"
	"netdelta/testbed"
)

// FreshTry is what a fresh pod tries from its first moment on: packets to an answerer, each of a socket of its own.
type FreshTry struct {
	At    netip.AddrPort `json:"at"`
	Every time.Duration  `json:"every_ns"`
	// Admitted says that the pod is to be let in: it tries until it is. Else it is to be refused: it tries until nothing has passed for a while.
	Admitted bool `json:"admitted"`
	// Within is how long it tries at most.
	Within time.Duration `json:"within_ns"`
}

const (
	// lastWords is the file whose content Kubernetes keeps when a container has ended.
	lastWords = "/dev/termination-log"
	// refusedFor is how long nothing must have passed until a pod counts as refused.
	refusedFor = 3 * time.Second
)

// call carries a visit out, and leaves what came of it in a file.
func call(visit, leave string) error {
	began := clock.Now()
	var v FreshTry
	if err := json.Unmarshal([]byte(visit), &v); err != nil {
		return err
	}
	if v.Every <= 0 || v.Within <= 0 {
		return fmt.Errorf("a packet every %v for %v is none", v.Every, v.Within)
	}
	text, err := json.Marshal(v.carryOut(began))
	if err != nil {
		return err
	}
	return os.WriteFile(leave, text, 0o600)
}

// carryOut sends the packets and looks at what became of each, in the order in which they were sent.
func (v FreshTry) carryOut(began time.Duration) testbed.FreshResult {
	probes, over := make(chan *probe, int(2*answeredWithin/v.Every)+1), make(chan struct{})
	go v.send(probes, over)
	var r testbed.FreshResult
	var last, right time.Duration // when the last packet was sent that came out wrong, and the first after it
	wrong := false
	for p := range probes {
		<-p.done
		if r.Settled {
			continue // what is under way
		}
		r.Sent++
		at := p.sent - began
		if p.answered {
			r.Passed++
		}
		if p.answered != v.Admitted {
			last, right, wrong = at, 0, true
			continue
		}
		if right == 0 {
			right = at
		}
		if v.Admitted || at-last > refusedFor {
			r.Settled = true
			close(over)
		}
	}
	if wrong {
		r.Before, r.After = last, right
	}
	return r
}

// send begins probes until it is over, or the time is.
func (v FreshTry) send(probes chan<- *probe, over <-chan struct{}) {
	defer close(probes)
	next := time.NewTicker(v.Every)
	defer next.Stop()
	for deadline := time.Now().Add(v.Within); time.Now().Before(deadline); {
		p := &probe{done: make(chan struct{})}
		go p.run(Probing{At: v.At, Protocol: "udp"})
		probes <- p
		select {
		case <-next.C:
		case <-over:
			return
		}
	}
}
