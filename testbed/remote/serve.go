package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/rpc"
)

// server is what one caller has open here.
type server struct {
	driver *lab.Driver
	cards  map[string]string // names of this machine's network cards, by their addresses

	mu        sync.Mutex
	next      int
	labs      map[int]*lab.Testbed
	taps      map[int]testbed.Tap
	processes map[int]testbed.Process
}

// Serve builds parts of testbeds as the other end of rwc asks, until that ends. Then nothing of them is left.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, networks []network.Network) error {
	s := &server{
		driver: lab.NewDriver(networks), cards: map[string]string{},
		labs: map[int]*lab.Testbed{}, taps: map[int]testbed.Tap{}, processes: map[int]testbed.Process{},
	}
	found, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list this machine's network cards: %w", err)
	}
	for _, f := range found {
		s.cards[f.HardwareAddr.String()] = f.Name
	}
	conn := rpc.NewConn(rwc, false)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	return conn.Serve(func(stream *rpc.Stream, r rpc.Request) {
		if r.Op == opStart {
			w := rpc.NewWriter(stream)
			_ = w.JSON(rpc.Exited, s.process(ctx, r, stream, w)) // the caller learns by the end of the stream what it could not be told
			return
		}
		value, err := s.answer(ctx, r)
		if err != nil {
			err = typed{err}
		}
		stream.Answer(r, value, err)
	}, func() (err error) {
		for _, l := range s.labs {
			err = errors.Join(err, l.Close())
		}
		return err
	})
}

func (s *server) answer(ctx context.Context, r rpc.Request) (any, error) {
	if r.Op == rpc.OpHello {
		return rpc.Greet(), nil
	}
	return rpc.Call(r, func(args request) (answer, error) { return s.carryOut(ctx, r, args) })
}

// carryOut carries out one operation.
func (s *server) carryOut(ctx context.Context, asked rpc.Request, r request) (answer, error) {
	switch asked.Op {
	case opSupports:
		return answer{}, s.driver.Supports(ctx, r.Spec)
	case opOpen:
		return s.open(ctx, r)
	case opKill:
		s.mu.Lock()
		p := s.processes[r.Process]
		s.mu.Unlock()
		if p == nil {
			return answer{}, nil // it has just ended
		}
		return answer{}, p.Kill()
	case opPackets, opUntap:
		return s.tapped(asked.Op, r)
	}
	s.mu.Lock()
	l := s.labs[r.Lab]
	s.mu.Unlock()
	if l == nil {
		return answer{}, lab.ErrClosed
	}
	return s.of(ctx, l, asked, r)
}

func (s *server) open(ctx context.Context, r request) (answer, error) {
	name, ok := s.cards[r.Part.Card]
	if !ok {
		return answer{}, fmt.Errorf("this machine has no network card with the address %s", r.Part.Card)
	}
	r.Part.Card = name
	l, err := s.driver.OpenPart(ctx, r.Spec, r.Part)
	if err != nil {
		return answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	s.labs[s.next] = l
	return answer{Lab: s.next}, nil
}

// of carries out an operation on a lab.
func (s *server) of(ctx context.Context, l *lab.Testbed, asked rpc.Request, r request) (a answer, err error) {
	switch asked.Op {
	case opClose:
		s.mu.Lock()
		delete(s.labs, r.Lab)
		s.mu.Unlock()
		return a, l.Close()
	case opSwap:
		return a, l.Swap(ctx, r.Network)
	case opLinks:
		a.Links, err = l.Links(ctx)
	case opSysctls:
		a.Sysctls, err = l.Sysctls(ctx)
	case opCounters:
		found, err := l.Counters(ctx)
		for d, c := range found {
			a.Counters = append(a.Counters, counted{d, c})
		}
		return a, err
	case opStacks:
		found, err := l.Stacks(ctx)
		for where, c := range found {
			a.Stacks = append(a.Stacks, stacked{where, c})
		}
		return a, err
	case opTap:
		t, err := l.Tap(ctx, r.Spaces)
		if err != nil {
			return a, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.next++
		s.taps[s.next], a.Tap = t, s.next
		return a, nil
	case opFit:
		from, to, err := pair(l, r)
		if err != nil {
			return a, err
		}
		return a, l.Fit(ctx, from, to, r.Size)
	default:
		err = asked.Unknown()
	}
	return a, err
}

func pair(l *lab.Testbed, r request) (from, to testbed.Pod, err error) {
	pods := l.Pods()
	if r.From < 0 || r.To < 0 || r.From >= len(pods) || r.To >= len(pods) {
		return nil, nil, fmt.Errorf("there are no pods %d and %d", r.From, r.To)
	}
	return pods[r.From], pods[r.To], nil
}

func (s *server) tapped(op string, r request) (a answer, err error) {
	s.mu.Lock()
	t := s.taps[r.Tap]
	if op == opUntap {
		delete(s.taps, r.Tap)
	}
	s.mu.Unlock()
	switch {
	case t == nil:
		return a, errors.New("the tap is closed")
	case op == opUntap:
		return a, t.Close()
	}
	a.Packets, a.Missed, err = t.Packets()
	return a, err
}

// process starts a process in a pod and stays with it to its end.
func (s *server) process(ctx context.Context, asked rpc.Request, stream *rpc.Stream, w *rpc.Writer) rpc.Exit {
	failed := func(err error) rpc.Exit { return rpc.Exit{Status: -1, Error: err.Error()} }
	var r request
	if err := json.Unmarshal(asked.Args, &r); err != nil {
		return failed(err)
	}
	s.mu.Lock()
	l := s.labs[r.Lab]
	s.mu.Unlock()
	if l == nil || r.Command == nil {
		return failed(lab.ErrClosed)
	}
	pod, _, err := pair(l, r)
	if err != nil {
		return failed(err)
	}
	p, err := pod.Start(ctx, *r.Command)
	if err != nil {
		return failed(err)
	}
	s.mu.Lock()
	s.processes[p.PID()] = p
	s.mu.Unlock()
	_ = w.JSON(rpc.Started, rpc.Start{PID: p.PID()})
	go func() {
		if _, err := io.Copy(p, stream); err != nil {
			_, _ = io.Copy(io.Discard, stream) // it reads no more
		}
		_ = p.Close() // how it ended is told by Wait
	}()
	go func() {
		<-stream.Left()
		_ = p.Kill() // it may have ended
	}()
	_, _ = io.Copy(rpc.Output{To: w, Kind: rpc.Stdout}, p) // to its end, however it comes
	err = p.Wait()
	s.mu.Lock()
	delete(s.processes, p.PID())
	s.mu.Unlock()
	_ = w.Bytes(rpc.Stderr, []byte(p.Stderr()))
	if err != nil {
		return failed(err)
	}
	return rpc.Exit{}
}
