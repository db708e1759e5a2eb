package experiment

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"netdelta/network"
	"netdelta/probe/cpu"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// follow has the meter watch the threads of both ends, which have run by now.
func (s *seat) follow(ctx context.Context) error {
	ends := []*service{{agent: s.client, session: s.session}}
	for _, end := range append(ends, s.services...) {
		threads, err := end.agent.Threads(ctx, end.session)
		if err != nil {
			return err
		}
		s.meter.Follow(end.agent, threads)
	}
	if !s.served() {
		return nil
	}
	var agents []cpu.Process
	for _, end := range s.services {
		agents = append(agents, end.agent)
	}
	return s.meter.Programs(agents)
}

// prove runs the seat's first bursts, which nobody counts, and where the testbed shows its devices watches which way they go.
func (s *seat) prove(ctx context.Context) error {
	load := s.firstBursts
	if s.prober == nil {
		_, err := load(ctx)
		return err
	}
	proof, err := s.prober.Prove(ctx, s.client.Pod(), s.server.Pod(), s.protocol, load)
	if err != nil {
		return err
	}
	s.path = &proof
	return nil
}

// opaque says that it is not known which way the bytes of the cell's programs went, even where it is known how many they were.
func (s *seat) opaque() bool { return s.demand.Opaque || len(s.demand.Programs) > 0 }

// peers are the pods that serve the seat beside its server.
func (s *seat) peers() []testbed.Pod {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.pods()[1:]
}

// called is where the client reaches the server. Of a cluster on machines that somebody else has joined it is the first pod, without a
// port where clients find their own way to all of them.
func (s *seat) called() netip.AddrPort {
	if s.cluster == nil || !s.far {
		return s.remote
	}
	return s.cluster.called(s.testbed, s.client)
}

// proofLeast is how many transactions a proof should rest on; a few messages of a stream are many packets, and proofBytes of
// them will do as well.
const (
	proofLeast = 16
	proofBytes = 256 * unit.KiB
)

// firstBursts run until enough has arrived: at a low rate, a short burst may have nothing in it.
func (s *seat) firstBursts(ctx context.Context) (path.Load, error) {
	burst := s.pace.length
	load := path.Load{Protocol: s.protocol, Server: s.called(), Opaque: s.opaque(), Peers: s.peers()}
	if s.protocol == network.UDP {
		load.Message = s.cell.Params.Message
	}
	transactions := int64(0)
	for _, length := range []time.Duration{burst / warmupShare, burst, 10 * burst} {
		b, err := s.client.Burst(ctx, s.session, workload.BurstSpec{Duration: length, DropLast: s.disturbed, Deadline: length - burst + s.pace.deadline})
		if err != nil {
			return load, err
		}
		s.disturbed = true // keeps the burst out of the histogram
		s.arrived(&load, b.Moved, b.Bytes)
		if transactions += b.Transactions; transactions >= proofLeast || load.Opaque && (load.Both >= proofBytes || length == burst) || !s.latencies && load.Requests >= proofBytes {
			break
		}
	}
	s.silent = s.latencies && transactions == 0
	return load, nil
}

// arrived adds to a load what a workload moved: requests and responses alike, or a stream one way. Of a stream of datagrams
// only what arrived counts, for not all that was sent may have.
func (s *seat) arrived(load *path.Load, moved, delivered int64) {
	switch {
	case s.opaque():
		load.Both += unit.Bytes(cmp.Or(moved, delivered))
	case s.latencies:
		load.Requests += unit.Bytes(moved / 2)
		load.Responses += unit.Bytes(moved / 2)
		if s.connects > 0 {
			load.Connections += moved / 2 / int64(s.connects)
		}
	case s.protocol == network.UDP:
		load.Requests += unit.Bytes(delivered)
	default:
		load.Requests += unit.Bytes(moved)
	}
}

// beginAudits notes the devices' counters before the bursts that count.
func beginAudits(ctx context.Context, seats []*seat) error {
	for p := range seatsByProber(seats) {
		if err := p.Begin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// audit holds what the devices carried since beginAudits against what the trials of the seats moved, and adds what it finds
// to their proofs. Trials that share a testbed share its devices: where one of them was misrouted from the start, the counters
// say nothing of the others. A testbed that can't be read any more leaves the proofs as they are, and they say so.
func audit(ctx context.Context, seats []*seat, trials []result.Trial) {
	for p, members := range seatsByProber(seats) {
		if slices.ContainsFunc(members, func(i int) bool { return !seats[i].path.OK }) {
			continue
		}
		var moved []path.Moved
		for _, i := range members {
			s, load := seats[i], path.Load{}
			var sum int64
			for _, m := range s.bursts.Moved {
				sum += m
			}
			s.arrived(&load, sum, trials[i].Bytes)
			moved = append(moved, path.Moved{
				Opaque: s.opaque(), Both: load.Both, Peers: s.peers(),
				From: s.client.Pod(), To: s.server.Pod(), Protocol: s.protocol, Requests: load.Requests, Responses: load.Responses,
				Connections: load.Connections,
			})
		}
		found, err := p.End(ctx, moved)
		if err != nil {
			found.Weak = append(found.Weak, fmt.Sprintf("no audit of the whole trial: %v", err))
		}
		for _, i := range members {
			if trials[i].Path != nil {
				found.Enter(trials[i].Path)
			}
		}
	}
}

// seatsByProber are the indices of the seats that share a testbed whose devices can be seen.
func seatsByProber(seats []*seat) map[path.Proof][]int {
	by := map[path.Proof][]int{}
	for i, s := range seats {
		if s.prober != nil && s.path != nil {
			by[s.prober] = append(by[s.prober], i)
		}
	}
	return by
}
