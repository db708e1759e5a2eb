// Package nodeagent looks at a cluster's nodes and pods from within: at the devices of a network namespace, what they and the IP
// stack have counted, and at a sample of the packets of a trial, of no other. It is netdelta itself, started in a pod and spoken
// to over its standard input and output (package rpc), and it ends when its input does.
//
// On a node it needs a pod in the node's own namespace with the capabilities of SecurityContext. In an ordinary pod it needs no
// rights, and sees what concerns the pod, but no packets.
package nodeagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
	"netdelta/testbed/rpc"
)

// Limits of what is read and answered.
const (
	// packetsMost is how many packets one watch keeps; what is more was missed.
	packetsMost = 8192
	// addressesMost is how many addresses packets are held against.
	addressesMost = 512
)

// server looks at the namespace that this process is in.
type server struct {
	counters *nsmonitor.CounterReader
	next     int
	watches  map[int]*watch
}

// Serve answers requests from in on out until in ends, which is not an error.
func Serve(in io.Reader, out io.Writer) (err error) {
	s := &server{watches: map[int]*watch{}}
	if s.counters, err = nsmonitor.NewCounterReader(); err != nil {
		return err
	}
	err = rpc.Serve(in, out, false, func(r rpc.Request) (any, error) {
		if r.Op == rpc.OpHello {
			return rpc.Greet(), nil
		}
		return rpc.Call(r, func(args request) (a answer, err error) { return a, s.answer(r, args, &a) })
	})
	for _, w := range s.watches {
		err = errors.Join(err, w.stop())
	}
	return errors.Join(err, s.counters.Close())
}

// answer carries out one operation.
func (s *server) answer(r rpc.Request, args request, a *answer) (err error) {
	switch r.Op {
	case opDescribe:
		a.Interfaces, err = nsmonitor.Interfaces()
	case opCount:
		err = s.count(a)
	case opStanding:
		a.Standing, err = nsmonitor.Standing(testbed.Settings())
	case opBegin:
		err = s.begin(args, a)
	case opEnd:
		err = s.end(args, a)
	case opDrop:
		if w := s.watches[args.Watch]; w != nil {
			delete(s.watches, args.Watch)
			err = w.stop()
		}
	default:
		err = r.Unknown()
	}
	return err
}

// count reads the counters.
func (s *server) count(a *answer) error {
	devices, err := s.counters.Devices()
	if err != nil {
		return err
	}
	a.Counters = map[string]testbed.Counters{}
	for _, d := range devices {
		a.Counters[d.Name] = d.Counters
	}
	a.Stack, err = s.counters.Stack()
	return err
}

// begin begins a watch: the counters are read last, next to the load.
func (s *server) begin(r request, a *answer) error {
	if len(r.Addresses) > addressesMost {
		return fmt.Errorf("there are %d addresses to look for, at most %d can be", len(r.Addresses), addressesMost)
	}
	w := newWatch(r.Addresses, s.counters.NameOf)
	if err := w.start(); err != nil {
		return err
	}
	s.next++
	s.watches[s.next] = w
	a.Watch, a.Lacks = s.next, w.lacks
	return s.count(a)
}

// end ends a watch, and says what else is known of the way.
func (s *server) end(r request, a *answer) error {
	w := s.watches[r.Watch]
	if w == nil {
		return errors.New("there is no such watch: it has ended")
	}
	delete(s.watches, r.Watch)
	err := errors.Join(s.count(a), w.stop())
	a.Packets, a.Missed, a.Lacks = w.seen, w.missed, w.lacks
	if err != nil {
		return err
	}
	if a.Interfaces, err = nsmonitor.Interfaces(); err != nil {
		return err
	}
	a.Routes = routes(r.To)
	if r.Port != 0 {
		a.Peers, err = nsmonitor.Peers(r.Port)
	}
	return err
}

// routes are those to addresses. One that is not reached has none.
func routes(to []netip.Addr) []testbed.Route {
	var all []testbed.Route
	for _, address := range to {
		if r, err := nsmonitor.RouteTo(address); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// watchPause is how long packets wait in the kernel before they are looked through: on a busy node, thousands pass in a
// millisecond, and there is room for as many.
const watchPause = time.Millisecond

// watch samples the packets that concern some addresses.
type watch struct {
	needles [][]byte
	sampler *nsmonitor.Sampler // nil where there is no sample
	lacks   string

	halt   chan struct{}
	ended  sync.WaitGroup
	seen   []testbed.Packet // until ended, of the goroutine alone; so are the others
	missed int
	err    error
}

func newWatch(addresses []netip.Addr, name func(int) string) *watch {
	w := &watch{halt: make(chan struct{})}
	if len(addresses) > 0 {
		w.sampler = nsmonitor.NewSampler(network.Space{}, name)
	}
	for _, a := range addresses {
		w.needles = append(w.needles, a.Unmap().AsSlice())
	}
	return w
}

// start opens the sample, if there is something to look for. Without the right to one, or a kernel that can, there is none, and lacks says why.
func (w *watch) start() error {
	if w.sampler == nil {
		return nil
	}
	err := w.sampler.Open()
	var refused *testbed.PermissionError
	var unsupported *testbed.UnsupportedError
	switch {
	case errors.As(err, &refused):
		w.sampler, w.lacks = nil, refused.Need
	case errors.As(err, &unsupported):
		w.sampler, w.lacks = nil, unsupported.Need
	case err != nil:
		return err
	default:
		w.ended.Go(w.follow)
	}
	return nil
}

// follow looks through packets as they come, until it is told to halt.
func (w *watch) follow() {
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for halted := false; !halted && w.err == nil; {
		select {
		case <-w.halt:
			halted = true // once more, for what has come meanwhile
		case <-tick.C:
		}
		packets, missed, err := w.sampler.Read()
		w.err = err
		w.missed += missed
		for _, p := range packets {
			switch {
			case !concerns(p.Head, w.needles):
			case len(w.seen) == packetsMost:
				w.missed++
			default:
				// Of the others, whose memory it shares, nothing is kept.
				p.Head = bytes.Clone(p.Head)
				w.seen = append(w.seen, p)
			}
		}
	}
}

// stop ends the sample. What was seen is complete then. It is not called twice.
func (w *watch) stop() error {
	close(w.halt)
	w.ended.Wait()
	if w.sampler == nil {
		return nil
	}
	return errors.Join(w.err, w.sampler.Close())
}

// concerns tells whether a packet is between two of the addresses: its head has two of them, or one twice. However it is wrapped,
// addresses stand in it as they are, and packets of others are not looked into.
func concerns(head []byte, addresses [][]byte) bool {
	found := 0
	for _, a := range addresses {
		for at := 0; found < 2; {
			i := bytes.Index(head[at:], a)
			if i < 0 {
				break
			}
			found++
			at += i + len(a)
		}
	}
	return found >= 2
}

// patience is how long an answer may take. It takes milliseconds.
const patience = 20 * time.Second

// Agent is the controller's end of an agent in a pod. It is safe for concurrent use.
type Agent struct {
	*rpc.Client
	pod testbed.Pod
}

// Start starts the program as an agent in a pod, where it has this path, and waits until it has introduced itself.
func Start(ctx context.Context, pod testbed.Pod, program string) (*Agent, error) {
	proc, err := pod.Start(ctx, testbed.Command{Path: program, Args: []string{Verb}})
	if err != nil {
		return nil, fmt.Errorf("start an agent that looks at %s: %w", pod.Name(), err)
	}
	a := &Agent{rpc.NewClient("node agent "+pod.Name(), proc), pod}
	if _, err := rpc.Meet[rpc.Greeting](ctx, a.Client, pod, testbed.Command{Path: program, Args: []string{"--version"}}, patience); err != nil {
		return nil, errors.Join(fmt.Errorf("greet the agent that looks at %s: %w", pod.Name(), err), a.Close())
	}
	return a, nil
}

// Pod is the pod that the agent runs in: one in its node's own namespace has the node's address.
func (a *Agent) Pod() testbed.Pod { return a.pod }

// Describe lists the devices of the agent's namespace.
func (a *Agent) Describe(ctx context.Context) ([]testbed.Interface, error) {
	answer, err := a.ask(ctx, opDescribe, request{})
	return answer.Interfaces, err
}

// Count reads the counters of all devices by their names, and the counters of the IP stack.
func (a *Agent) Count(ctx context.Context) (map[string]testbed.Counters, testbed.Stack, error) {
	answer, err := a.ask(ctx, opCount, request{})
	return answer.Counters, answer.Stack, err
}

// Standing names what stands in the agent's namespace and belongs to no pod, as nsmonitor.Standing does.
func (a *Agent) Standing(ctx context.Context) ([]string, error) {
	answer, err := a.ask(ctx, opStanding, request{})
	return answer.Standing, err
}

func (a *Agent) ask(ctx context.Context, op string, r request) (answer, error) {
	return rpc.Do[answer](ctx, a.Client, op, r, patience)
}

// Verb is the argument with which the program serves.
const Verb = "look"

// The operations.
const (
	opDescribe = "describe"
	opCount    = "count"
	opStanding = "standing"
	opBegin    = "begin"
	opEnd      = "end"
	opDrop     = "drop"
)

// request is what an operation is about. What it does not need is zero.
type request struct {
	Watch int `json:"watch,omitempty"`
	// Addresses: each sampled packet must have two of them.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// To are addresses whose routes are asked for, and Port is the server's whose peers are asked for.
	To   []netip.Addr `json:"to,omitempty"`
	Port uint16       `json:"port,omitempty"`
}

// answer is what comes of it.
type answer struct {
	Watch      int                         `json:"watch,omitempty"`
	Interfaces []testbed.Interface         `json:"interfaces,omitempty"`
	Counters   map[string]testbed.Counters `json:"counters,omitempty"`
	Stack      testbed.Stack               `json:"stack"`
	Standing   []string                    `json:"standing,omitempty"`
	Packets    []testbed.Packet            `json:"packets,omitempty"`
	Missed     int                         `json:"missed,omitempty"`
	Lacks      string                      `json:"lacks,omitempty"`
	Routes     []testbed.Route             `json:"routes,omitempty"`
	Peers      []netip.AddrPort            `json:"peers,omitempty"`
}
