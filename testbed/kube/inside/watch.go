package inside

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"netdelta/internal/clock"
	"netdelta/testbed"
)

// Probing is a path that is watched by probes: connections or packets. Each comes from a new socket, so that connection tracking sees
// each as a new flow.
type Probing struct {
	At netip.AddrPort `json:"at"`
	// Protocol is "udp" for packets to an answerer, or "tcp" for connections, of which a refusal by the pod itself is an answer, too.
	Protocol string        `json:"protocol"`
	Every    time.Duration `json:"every_ns"`
}

const (
	// answeredWithin is how long a probe waits: on a busy machine an answer may take long, and a refusal is no answer at all.
	answeredWithin = 1500 * time.Millisecond
	// closedAfter and openAfter are how many probes in a row make a turn: packets may get lost, and pass while an engine is overloaded.
	closedAfter = 25
	openAfter   = 10
)

// watch probes a way until its input ends, and says when it opens and closes.
func watch(vigil string, in io.Reader, out io.Writer) error {
	var v Probing
	if err := json.Unmarshal([]byte(vigil), &v); err != nil {
		return err
	}
	if v.Every <= 0 || v.Protocol != "udp" && v.Protocol != "tcp" {
		return fmt.Errorf("a probe by %q every %v is none", v.Protocol, v.Every)
	}
	var speaking sync.Mutex
	tell := func(t testbed.Turn) {
		speaking.Lock()
		defer speaking.Unlock()
		_ = say(out, t) // who listens has gone when this fails, and the input ends
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			received := clock.Now()
			tell(testbed.Turn{Received: received, Answered: clock.Now()})
		}
	}()
	probes := make(chan *probe, int(2*answeredWithin/v.Every)+1)
	go follow(probes, tell)
	defer close(probes)
	for next := time.NewTicker(v.Every); ; {
		select {
		case <-ended:
			next.Stop()
			return nil
		case <-next.C:
			p := &probe{done: make(chan struct{})}
			go p.run(v)
			probes <- p
		}
	}
}

// follow looks at probes in the order in which they were begun.
func follow(probes <-chan *probe, tell func(testbed.Turn)) {
	var known, open bool
	var last, since time.Duration // of the present state, and of the first probe against it
	against := 0
	for p := range probes {
		<-p.done
		if known && p.answered == open {
			last, against = p.sent, 0
			continue
		}
		if against++; against == 1 {
			since = p.sent
		}
		if need := map[bool]int{true: openAfter, false: closedAfter}[p.answered]; against < need {
			continue
		}
		tell(testbed.Turn{Open: p.answered, Before: last, Since: since})
		known, open, last, against = true, p.answered, p.sent, 0
	}
}

// probe is one try.
type probe struct {
	sent     time.Duration
	answered bool
	done     chan struct{}
}

func (p *probe) run(v Probing) {
	defer close(p.done)
	p.sent = clock.Now()
	c, err := net.DialTimeout(v.Protocol, v.At.String(), answeredWithin)
	if err != nil {
		p.answered = v.Protocol == "tcp" && errors.Is(err, syscall.ECONNREFUSED)
		return
	}
	defer func() { _ = c.Close() }() // it has served
	if v.Protocol == "tcp" {
		p.answered = true
		return
	}
	if err := c.SetDeadline(time.Now().Add(answeredWithin)); err != nil {
		return
	}
	p.sent = clock.Now()
	if _, err := c.Write([]byte("?")); err != nil {
		return
	}
	_, err = c.Read(make([]byte, 1))
	p.answered = err == nil
}

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
