package ssh

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
	"netdelta/testbed/ssh/server"
	"netdelta/unit"
)

// Kind is the name of the provider.
const Kind = "ssh"

// wires is how many networks can stand side by side: each has a device of its own on every server.
const wires = 16

// NodesMost is how many servers there can be: their numbers are a byte of addresses.
const NodesMost = 64

// Servers is the provider of testbeds each of whose nodes is a server. It is safe for concurrent use.
type Servers struct {
	*joined.Driver
	options  Options
	program  string
	links    []*link
	machines []*joined.Machine
	stop     func()
	asking   sync.WaitGroup
	trip     time.Duration // of a question and its answer, to the slowest server
}

var _ testbed.Provider = (*Servers)(nil)

// session is what all servers of one run have in common.
type session struct {
	id    [8]byte
	first uint8 // segment
}

func newSession() (s session) {
	_, _ = rand.Read(s.id[:]) // it never fails
	// Two runs on one link at the same time meet in one of fifteen cases, and then fail to make their devices.
	s.first = uint8(wires * (1 + int(s.id[0])%15))
	return s
}

// folder is where the program is on every server.
func (s session) folder() string {
	return filepath.Join(server.Parent, server.Prefix+hex.EncodeToString(s.id[:]))
}

// macs are the addresses of a server's devices.
func (s session) macs(node int) (all []string) {
	for w := range wires {
		all = append(all, fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", s.id[1], s.id[2], s.id[3], node, w))
	}
	return all
}

// Open reaches all servers and makes nodes of them. On an error nothing is left there.
func Open(ctx context.Context, o Options) (s *Servers, err error) {
	common := newSession()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s = &Servers{options: o, program: filepath.Join(common.folder(), machine.AgentName), links: make([]*link, len(o.Nodes)), machines: make([]*joined.Machine, len(o.Nodes)), stop: func() {}}
	nodes, failed := make([]joined.Node, len(o.Nodes)), make([]error, len(o.Nodes))
	o.each(func(i int, n Node) {
		order := server.Order{Do: server.Node, Folder: common.folder(), Mode: o.NIC.Mode, Card: o.NIC.Card, MACs: common.macs(i), Silence: o.silence()}
		if s.links[i], s.machines[i], failed[i] = o.node(ctx, n, order); failed[i] == nil {
			nodes[i] = joined.Node{Machine: s.machines[i], Cards: order.MACs, Own: o.own(s.links[i].report.Card)}
		}
	})
	if err := errors.Join(failed...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, m := range s.machines {
		asked := time.Now()
		if err := m.Ping(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.trip = max(s.trip, time.Since(asked))
	}
	s.Driver = joined.NewDriver(Kind, server.Networks(), nodes)
	s.Driver.ShareLink(common.first)
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	for i := range s.machines {
		s.asking.Go(func() { ask(asking, s.machines[i], o.silence()) })
	}
	return s, nil
}

// own is the network of a server that stays with it.
func (o Options) own(c server.CardReport) *joined.Own {
	if o.NIC.Mode == server.Take {
		return nil
	}
	own := &joined.Own{Card: c.Name, MTU: unit.Bytes(c.MTU)}
	for _, text := range c.Addresses {
		if a, err := netip.ParsePrefix(text); err == nil {
			own.Addresses = append(own.Addresses, a)
		}
	}
	return own
}

// node reaches one server and makes a node of it.
func (o Options) node(ctx context.Context, n Node, order server.Order) (*link, *joined.Machine, error) {
	l, err := o.begin(ctx, n, order)
	if err != nil {
		return nil, nil, err
	}
	if err := l.answer(&l.report); err != nil {
		return nil, nil, l.failure("make a node of", errors.Join(err, ignoreClosed(l.Close())))
	}
	m, err := joined.Connect(ctx, conversation{l})
	if err != nil {
		return nil, nil, l.failure("make a node of", errors.Join(err, ignoreClosed(l.Close())))
	}
	return l, m, nil
}

// ask asks a server whether it is there, four times as often as it must hear something, and ends the conversation with one that does not
// answer: what waits for it then fails.
func ask(ctx context.Context, m *joined.Machine, silence time.Duration) {
	tick := time.NewTicker(silence / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.Done():
			return
		case <-tick.C:
		}
		once, cancel := context.WithTimeout(ctx, silence*3/4)
		err := m.Ping(once)
		cancel()
		if err != nil && ctx.Err() == nil {
			_ = m.Close()
			return
		}
	}
}

// Capabilities implements testbed.Provider.
func (s *Servers) Capabilities() testbed.Capabilities {
	all := s.Driver.Capabilities()
	all.Program = s.program
	all.PinsCPUs = false // the servers' processors are not numbered as this machine's
	all.Describe = s.describe
	all.Costs = &testbed.Costs{Start: 2*time.Second + 4*s.trip, Build: time.Second + 8*s.trip, Cell: 20*time.Millisecond + 2*s.trip, Exchange: s.trip, Opens: wires, Ground: "the servers"}
	return all
}

// describe says what the servers are. What of the environment is one machine's is the first server's.
func (s *Servers) describe(_ context.Context, e result.Environment) (result.Environment, []string, error) {
	var notes []string
	for i, l := range s.links {
		r := l.report
		if i == 0 {
			e.Kernel, e.Arch, e.OS, e.Hostname, e.Virtual, e.Clock = r.Kernel, r.Arch, r.OS, r.Host, r.Virtual, r.Clock
			e.Boot = "" // it was this machine's
			e.CPU.Model, e.CPU.Count, e.CPU.Governor = r.Model, r.CPUs, r.Governor
		}
		e.Servers = append(e.Servers, result.Server{
			Name: l.node.String(), Kernel: r.Kernel, Arch: r.Arch, OS: r.OS, Virtual: r.Virtual, CPU: result.CPU{Model: r.Model, Count: r.CPUs, Governor: r.Governor},
			Mode: s.options.NIC.Mode, Card: r.Card.Name, Driver: r.Card.Driver, MTU: r.Card.MTU, Speed: r.Card.Speed,
		})
		notes = append(notes, fmt.Sprintf("node%d is the server %s: %d x %s, Linux %s; its node has %s", i, l.node, r.CPUs, r.Model, r.Kernel, s.options.NIC.over(r.Card)))
	}
	return e, notes, nil
}

// over says in words what a node has of its server's card.
func (n NIC) over(c server.CardReport) string {
	if n.Mode == server.Take {
		return "to itself the card " + About(c) + ", with macvlan devices over it"
	}
	return "macvlan devices over the card " + About(c)
}

// About says in words what a card is.
func About(c server.CardReport) string {
	text := c.Name + " ("
	if c.Driver != "" {
		text += c.Driver + ", "
	}
	if c.Speed > 0 {
		text += unit.BitsPerSecond(c.Speed).String() + ", "
	}
	return text + fmt.Sprintf("MTU %d)", c.MTU)
}

// Close ends what runs on the servers, and waits until they have given back everything. It is idempotent.
func (s *Servers) Close() error {
	s.stop()
	s.asking.Wait()
	failed := make([]error, len(s.links))
	var group sync.WaitGroup
	for i, l := range s.links {
		if l == nil {
			continue
		}
		group.Go(func() {
			_ = s.machines[i].Close() // it closes the link, too
			if err := l.Close(); err != nil {
				failed[i] = l.failure("leave", err)
			}
		})
	}
	group.Wait()
	s.links = nil
	return errors.Join(failed...)
}
