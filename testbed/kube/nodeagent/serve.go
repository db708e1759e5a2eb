package nodeagent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"netdelta/testbed"
	"netdelta/testbed/lookout"
)

// Limits of what is read and answered.
const (
	requestMost = 1 << 20
	// packetsMost is how many packets one watch keeps; what is more was missed.
	packetsMost = 8192
	// addressesMost is how many addresses packets are held against.
	addressesMost = 512
)

// server looks at the namespace that this process is in.
type server struct {
	gauge   *lookout.Gauge
	next    int
	watches map[int]*watch
}

// Serve answers requests from in on out until in ends, which is not an error.
func Serve(in io.Reader, out io.Writer) (err error) {
	s := &server{watches: map[int]*watch{}}
	if s.gauge, err = lookout.NewGauge(); err != nil {
		return err
	}
	defer func() {
		for _, w := range s.watches {
			err = errors.Join(err, w.stop())
		}
		err = errors.Join(err, s.gauge.Close())
	}()
	answers := bufio.NewWriter(out)
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 4<<10), requestMost)
	for scanner.Scan() {
		var r request
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		a, err := s.answer(r)
		if err != nil {
			a.Error = err.Error()
		}
		if err := json.NewEncoder(answers).Encode(a); err != nil {
			return fmt.Errorf("answer %s: %w", r.Operation, err)
		}
		if err := answers.Flush(); err != nil {
			return fmt.Errorf("answer %s: %w", r.Operation, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	return nil
}

// answer carries out one operation.
func (s *server) answer(r request) (a answer, err error) {
	switch r.Operation {
	case opHello:
		a.Version = version
	case opDescribe:
		a.Interfaces, err = lookout.Interfaces()
	case opCount:
		err = s.count(&a)
	case opBegin:
		err = s.begin(r, &a)
	case opEnd:
		err = s.end(r, &a)
	case opDrop:
		if w := s.watches[r.Watch]; w != nil {
			delete(s.watches, r.Watch)
			err = w.stop()
		}
	default:
		err = fmt.Errorf("there is no operation %q: use the same netdelta on both sides", r.Operation)
	}
	return a, err
}

// count reads the counters.
func (s *server) count(a *answer) error {
	devices, err := s.gauge.Devices()
	if err != nil {
		return err
	}
	a.Counters = map[string]testbed.Counters{}
	for _, d := range devices {
		a.Counters[d.Name] = d.Counters
	}
	a.Stack, err = s.gauge.Stack()
	return err
}

// begin begins a watch: the counters are read last, next to the load.
func (s *server) begin(r request, a *answer) error {
	if len(r.Addresses) > addressesMost {
		return fmt.Errorf("there are %d addresses to look for, at most %d can be", len(r.Addresses), addressesMost)
	}
	w := newWatch(r.Addresses, s.gauge.NameOf)
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
	if a.Interfaces, err = lookout.Interfaces(); err != nil {
		return err
	}
	a.Routes = routes(r.To)
	if r.Port != 0 {
		a.Peers, err = lookout.Peers(r.Port)
	}
	return err
}

// routes are those to addresses. One that is not reached has none.
func routes(to []netip.Addr) []testbed.Route {
	var all []testbed.Route
	for _, address := range to {
		if r, err := lookout.RouteTo(address); err == nil {
			all = append(all, r)
		}
	}
	return all
}
