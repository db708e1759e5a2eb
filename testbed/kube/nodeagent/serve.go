package nodeagent

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

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
