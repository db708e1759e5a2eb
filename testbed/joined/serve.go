package joined

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"netdelta/internal/daemon"
	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/rpc"
	"netdelta/unit"
)

// server is what one caller has open here.
type server struct {
	driver *lab.Driver
	own    *netns.Namespace  // nil where nodes can't be used as they are found
	cards  map[string]string // names of this machine's network cards, by their addresses and by themselves

	mu        sync.Mutex
	next      int
	labs      map[int]*lab.Testbed
	taps      map[int]testbed.Tap
	processes map[int]testbed.Process
}

// Serve builds parts of testbeds as the other end of rwc asks, until that ends. Then nothing of them is left.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, networks []network.Network) error {
	return ServeBeside(ctx, rwc, networks, nil)
}

// ServeBeside is Serve in a namespace made for the purpose, on a machine whose own namespace is given: networks of nodes as they are found
// (network.Found) are in that one.
func ServeBeside(ctx context.Context, rwc io.ReadWriteCloser, networks []network.Network, own *netns.Namespace) error {
	s := &server{
		driver: lab.NewDriver(networks), own: own, cards: map[string]string{},
		labs: map[int]*lab.Testbed{}, taps: map[int]testbed.Tap{}, processes: map[int]testbed.Process{},
	}
	found, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list this machine's network cards: %w", err)
	}
	for _, f := range found {
		s.cards[f.HardwareAddr.String()], s.cards[f.Name] = f.Name, f.Name
	}
	// Without this, SIGPIPE would end a process whose caller is gone before its labs are removed. Programs that it starts get it as ever.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	conn := rpc.NewConn(rwc, false)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	return conn.Serve(func(stream *rpc.Stream, r rpc.Request) {
		if r.Op == opStart {
			w := rpc.NewWriter(stream)
			_ = w.JSON(rpc.Exited, s.process(ctx, r, stream, w)) // the caller learns by the end of the stream what it could not be told
			return
		}
		value, err := s.carryOut(ctx, r)
		if err != nil {
			err = typed{error: err}
		}
		stream.Answer(r, value, err)
	}, func() (err error) {
		s.endProcesses()
		for _, l := range s.labs {
			err = errors.Join(err, l.Close())
		}
		return err
	})
}

// carryOut carries out one operation.
func (s *server) carryOut(ctx context.Context, r rpc.Request) (any, error) {
	switch r.Op {
	case rpc.OpHello:
		return rpc.Greet(), nil
	case opSupports:
		return rpc.Call(r, func(spec testbed.Spec) (any, error) { return nil, s.driver.Supports(ctx, spec) })
	case opOpen:
		return rpc.Call(r, func(a openArgs) (int, error) { return s.open(ctx, a) })
	case opLacking:
		return rpc.Call(r, lacking)
	case opKill:
		return rpc.Call(r, func(pid int) (any, error) {
			if p := find(s, s.processes, pid); p != nil {
				return nil, p.Kill()
			}
			return nil, nil // it has just ended
		})
	case opPackets:
		return rpc.Call(r, func(number int) (a sampled, err error) {
			t := find(s, s.taps, number)
			if t == nil {
				return a, errors.New("the tap is closed")
			}
			a.Packets, a.Missed, err = t.Packets()
			return a, err
		})
	case opUntap:
		return rpc.Call(r, func(number int) (any, error) { return nil, closeOne(s, s.taps, number) })
	case opClose:
		return rpc.Call(r, func(a toLab[any]) (any, error) { return nil, closeOne(s, s.labs, a.Lab) })
	case opSwap:
		return inLab(s, r, func(l *lab.Testbed, network string) (any, error) { return nil, l.Swap(ctx, network) })
	case opLinks:
		return inLab(s, r, func(l *lab.Testbed, _ any) (any, error) { return l.Links(ctx) })
	case opSysctls:
		return inLab(s, r, func(l *lab.Testbed, _ any) (any, error) { return l.Sysctls(ctx) })
	case opCounters:
		return inLab(s, r, func(l *lab.Testbed, _ any) (any, error) {
			found, err := l.Counters(ctx)
			return entries(found), err
		})
	case opStacks:
		return inLab(s, r, func(l *lab.Testbed, _ any) (any, error) {
			found, err := l.Stacks(ctx)
			return entries(found), err
		})
	case opTap:
		return inLab(s, r, func(l *lab.Testbed, spaces []network.Space) (int, error) {
			t, err := l.Tap(ctx, spaces)
			if err != nil {
				return 0, err
			}
			return keep(s, s.taps, t), nil
		})
	case opFit:
		return betweenPods(s, r, func(l *lab.Testbed, from, to testbed.Pod, size unit.Bytes) (any, error) {
			return nil, l.Fit(ctx, from, to, size)
		})
	case opLargest:
		return betweenPods(s, r, func(l *lab.Testbed, from, to testbed.Pod, _ unit.Bytes) (all Largest, err error) {
			all.Way, all.Device, err = l.LargestPacket(ctx, from, to)
			return all, err
		})
	}
	return nil, r.Unknown()
}

// inLab carries out an operation about a lab that is open.
func inLab[A, R any](s *server, r rpc.Request, do func(*lab.Testbed, A) (R, error)) (any, error) {
	return rpc.Call(r, func(a toLab[A]) (value R, err error) {
		l := find(s, s.labs, a.Lab)
		if l == nil {
			return value, lab.ErrClosed
		}
		return do(l, a.Args)
	})
}

// lacking are the programs that this machine does not have.
func lacking(names []string) (missing []string, err error) {
	for _, name := range names {
		if _, err := daemon.Look(name); errors.Is(err, daemon.ErrMissing) {
			missing = append(missing, name)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// betweenPods carries out an operation about two pods of a lab.
func betweenPods[R any](s *server, r rpc.Request, do func(l *lab.Testbed, from, to testbed.Pod, size unit.Bytes) (R, error)) (any, error) {
	return inLab(s, r, func(l *lab.Testbed, a fitArgs) (value R, err error) {
		from, err := podOf(l, a.From)
		if err != nil {
			return value, err
		}
		to, err := podOf(l, a.To)
		if err != nil {
			return value, err
		}
		return do(l, from, to, a.Size)
	})
}

// find is what has a number, keep gives one to what is new, and closeOne closes it, which is no error when it was closed before.
func find[T any](s *server, all map[int]T, number int) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return all[number]
}

func keep[T any](s *server, all map[int]T, one T) (number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	all[s.next] = one
	return s.next
}

func closeOne[T io.Closer](s *server, all map[int]T, number int) error {
	s.mu.Lock()
	one, open := all[number]
	delete(all, number)
	s.mu.Unlock()
	if !open {
		return nil
	}
	return one.Close()
}

func podOf(l *lab.Testbed, number int) (testbed.Pod, error) {
	pods := l.Pods()
	if number < 0 || number >= len(pods) {
		return nil, fmt.Errorf("there is no pod %d", number)
	}
	return pods[number], nil
}

func (s *server) open(ctx context.Context, a openArgs) (int, error) {
	if a.Whole {
		l, err := s.driver.Open(ctx, a.Spec)
		if err != nil {
			return 0, err
		}
		return keep(s, s.labs, l.(*lab.Testbed)), nil
	}
	if len(a.Part.Cards) == 0 {
		return s.openFound(ctx, a)
	}
	for i, card := range a.Part.Cards {
		name, ok := s.cards[card]
		if !ok {
			return 0, fmt.Errorf("this machine has no network card %s", card)
		}
		a.Part.Cards[i] = name
	}
	l, err := s.driver.OpenPart(ctx, a.Spec, a.Part)
	if err != nil {
		return 0, err
	}
	return keep(s, s.labs, l), nil
}

// openFound opens the part of a testbed whose nodes are used as they are found.
func (s *server) openFound(ctx context.Context, a openArgs) (int, error) {
	if s.own == nil {
		return 0, errors.New("this machine's own network can't be used")
	}
	a.Part.Own = s.own
	l, err := s.driver.OpenPart(ctx, a.Spec, a.Part)
	if err != nil {
		return 0, err
	}
	return keep(s, s.labs, l), nil
}

// endProcesses ends the processes of a caller that is gone as it would have: by the end of their input, and those that stay by force.
func (s *server) endProcesses() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.processes))
	s.mu.Unlock()
	var ended sync.WaitGroup
	for _, p := range all {
		ended.Go(func() { _ = p.Close() }) // its caller does not ask any more
	}
	ended.Wait()
}

// process starts a process in a pod and stays with it to its end.
func (s *server) process(ctx context.Context, r rpc.Request, stream *rpc.Stream, w *rpc.Writer) rpc.Exit {
	started, err := inLab(s, r, func(l *lab.Testbed, a startArgs) (testbed.Process, error) {
		pod, err := podOf(l, a.Pod)
		if err != nil {
			return nil, err
		}
		return pod.Start(ctx, a.Command)
	})
	if err != nil {
		return rpc.Exit{Status: -1, Error: err.Error()}
	}
	p := started.(testbed.Process)
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
		_ = p.Close() // the caller is gone: it may put in order what it has to
	}()
	_, _ = io.Copy(rpc.Output{To: w, Kind: rpc.Stdout}, p) // to its end, however it comes
	err = p.Wait()
	s.mu.Lock()
	delete(s.processes, p.PID())
	s.mu.Unlock()
	_ = w.Bytes(rpc.Stderr, []byte(p.Stderr()))
	if err != nil {
		return rpc.Exit{Status: -1, Error: err.Error()}
	}
	return rpc.Exit{}
}
