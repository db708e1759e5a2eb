package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"netdelta/internal/gather"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
	"netdelta/testbed/servers/server"
	"netdelta/unit"
)

// wires is how many networks can stand side by side: each has a device of its own on every server.
const wires = 16

// NodesMost is how many machines there can be: their numbers are a byte of addresses.
const NodesMost = 64

// Options say which machines are made nodes, and how.
type Options struct {
	// Kind is the name of the kind of testbed.
	Kind     string
	Machines []Carrier
	NIC      NIC
	// Silence is how long a connection may be half open before each end gives it up; 0 is Silence.
	Silence time.Duration
	// Program is the path of this program on the machines; "" is the session's folder.
	Program string
	// Return is how long a machine that was lost may take to be there again; 0 is Return.
	Return time.Duration
	// Least is how many machines it takes: the rest may be out of reach, and is left out. 0 takes all.
	Least int
}

// Servers is the provider of testbeds each of whose nodes is a machine. It is safe for concurrent use.
type Servers struct {
	*joined.Driver
	options Options
	session session
	watch   func(m *joined.Machine) // as long as it is there
	stop    func()
	asking  sync.WaitGroup

	mu       sync.Mutex // held while lost machines are reached again
	links    []*conversation
	machines []*joined.Machine
	gone     []error  // why a machine is not waited for any more
	without  []string // of machines that are left out
	notes    []string

	trip  time.Duration // of a question and its answer, to the slowest machine
	wires int
}

var _ testbed.Provider = (*Servers)(nil)

// session is what all machines of one run have in common.
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

// folder is the private one on every machine.
func (s session) folder() string {
	return filepath.Join(server.Parent, server.Prefix+hex.EncodeToString(s.id[:]))
}

// macs are the addresses of a machine's devices.
func (s session) macs(node, count int) (all []string) {
	for w := range count {
		all = append(all, fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", s.id[1], s.id[2], s.id[3], node, w))
	}
	return all
}

// Open reaches all machines, or enough of them, and makes nodes of them. On an error nothing is left there.
func Open(ctx context.Context, o Options) (*Servers, error) {
	failed := make([]error, len(o.Machines))
	s, err := open(ctx, o, failed)
	if err == nil || o.Least == 0 || ctx.Err() != nil {
		return s, err
	}
	var reached []Carrier
	var without []string
	for i, at := range o.Machines {
		if failed[i] == nil {
			reached = append(reached, at)
		} else {
			without = append(without, fmt.Sprintf("%s is left out: %v", at, failed[i]))
		}
	}
	if len(reached) < o.Least || len(without) == 0 {
		return nil, err
	}
	o.Machines = reached
	if s, err = open(ctx, o, make([]error, len(reached))); err != nil {
		return nil, err
	}
	s.without = without
	return s, nil
}

// open is Open for all machines. Why one of them could not be made a node is put into failed.
func open(ctx context.Context, o Options, failed []error) (s *Servers, err error) {
	common := newSession()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.Silence, o.Return, o.Program = cmp.Or(o.Silence, Silence), cmp.Or(o.Return, Return), cmp.Or(o.Program, filepath.Join(common.folder(), machine.AgentName))
	addresses, err := o.NIC.wiresOf(len(o.Machines))
	if err != nil {
		return nil, err
	}
	s = &Servers{options: o, session: common, gone: make([]error, len(o.Machines)), wires: wires, links: make([]*conversation, len(o.Machines)), machines: make([]*joined.Machine, len(o.Machines)), stop: func() {}}
	if addresses != nil {
		s.wires = len(addresses)
	}
	nodes := make([]joined.Node, len(o.Machines))
	each(o.Machines, func(i int, at Carrier) {
		if s.links[i], s.machines[i], failed[i] = node(ctx, at, s.order(i)); failed[i] == nil {
			nodes[i] = joined.Node{Machine: s.machines[i], Wires: server.Wires(s.wires, o.NIC.Card), Own: o.own(s.links[i].report.Card), Hosts: hosts(at, s.links[i].report)}
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
	s.Driver = joined.NewDriver(o.Kind, server.Networks(), nodes)
	shared := joined.Shared{First: common.first, OneMAC: server.OneMAC(o.NIC.Mode), Addresses: addresses}
	if o.NIC.Mode == server.Macvlan || o.NIC.Mode == server.IPVlan {
		shared.MTU = s.MTU()
	}
	s.Driver.ShareLink(shared)
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.watch = func(m *joined.Machine) { s.asking.Go(func() { ask(asking, m, o.Silence) }) }
	for _, m := range s.machines {
		s.watch(m)
	}
	return s, nil
}

// order is what a machine is told that is to be a node.
func (s *Servers) order(i int) server.Order {
	nic := s.options.NIC
	return server.Order{
		Do: server.Node, Folder: s.session.folder(), Mode: nic.Mode, Card: nic.Card, Function: nic.Function,
		MACs: s.session.macs(i, s.wires*len(server.Cards(nic.Card))), Silence: s.options.Silence,
	}
}

// own is the network of a machine that stays with it.
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

// hosts are the names and addresses by which others know a machine; the first is how the user named it.
func hosts(at Carrier, r server.Report) []string {
	all := []string{at.String(), at.Address(), r.Host}
	for _, c := range r.Cards {
		for _, text := range c.Addresses {
			if a, err := netip.ParsePrefix(text); err == nil {
				all = append(all, a.Addr().String())
			}
		}
	}
	return all
}

// node reaches one machine and makes a node of it.
func node(ctx context.Context, at Carrier, order server.Order) (*conversation, *joined.Machine, error) {
	c, err := begin(ctx, at, order)
	if err != nil {
		return nil, nil, err
	}
	err = c.answer(&c.report)
	if err == nil {
		var m *joined.Machine
		if m, err = joined.Connect(ctx, c); err == nil {
			return c, m, nil
		}
	}
	return nil, nil, c.Fail("make a node of", err)
}

// Reports are what the machines say of themselves, in the nodes' order.
func (s *Servers) Reports() []server.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return gather.Each(s.links, func(l *conversation) server.Report { return l.report })
}

// MTU is the least of the machines' cards, in bytes.
func (s *Servers) MTU() unit.Bytes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leastMTU()
}

// leastMTU is the same, for a caller that holds s.mu.
func (s *Servers) leastMTU() (least unit.Bytes) {
	for _, l := range s.links {
		for _, c := range l.report.Chosen() {
			if mtu := unit.Bytes(c.MTU); least == 0 || mtu < least {
				least = mtu
			}
		}
	}
	return least
}

// ask asks a machine whether it is there when nothing was said for a quarter of the time that it may be silent, and ends the conversation with
// one that does not answer: what waits for it then fails. Between bursts machines are spoken to anyway, so that none is asked during one.
func ask(ctx context.Context, m *joined.Machine, silence time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.Done():
			return
		case <-time.After(silence/4 - m.Silent()):
		}
		if m.Silent() < silence/4 {
			continue
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
	all.Program = s.options.Program
	all.LosesNodes = true
	all.PinsCPUs = false // the machines' processors are not numbered as this machine's
	all.Describe = s.describe
	all.Targets = &testbed.Targets{Locate: s.Locate, From: network.Metal}
	if s.options.NIC.Mode == server.Take {
		all.Targets.From = "host" // what is taken is not the machine's own any more
	}
	all.Costs = &testbed.Costs{Start: 2*time.Second + 4*s.trip, Build: time.Second + 8*s.trip, Cell: 20*time.Millisecond + 2*s.trip, Exchange: s.trip, Opens: s.wires, Ground: "the servers"}
	return all
}

// describe says what the machines are. What of the environment is one machine's is the first one's.
func (s *Servers) describe(ctx context.Context, e result.Environment) (result.Environment, []string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := slices.Clone(s.without)
	for i, l := range s.links {
		r := l.report
		if i == 0 {
			e.Kernel, e.Arch, e.OS, e.Hostname, e.Virtual, e.Clock = r.Kernel, r.Arch, r.OS, r.Host, r.Virtual, r.Clock
			e.Boot = "" // it was this machine's
			e.CPU = r.CPU
		}
		at := result.Server{
			Name: l.name, Kernel: r.Kernel, Arch: r.Arch, OS: r.OS, Virtual: r.Virtual, CPU: r.CPU, Mode: s.options.NIC.Mode, ServerCard: recorded(r.Card),
		}
		for _, c := range r.Further {
			at.Further = append(at.Further, recorded(c))
		}
		e.Servers = append(e.Servers, at)
		notes = append(notes, fmt.Sprintf("node%d is %s: %d x %s%s, Linux %s; its node has %s", i, l.name, r.CPU.Count, r.CPU.Model, Isolated(r.CPU), r.Kernel, s.options.NIC.over(r.Chosen())))
	}
	e.Ways = s.ways(ctx)
	e.Findings = append(e.Findings, s.wayFindings(e.Ways)...)
	return e, append(notes, wayNotes(e.Ways)...), nil
}

// recorded is what a run's record has of a card.
func recorded(c server.CardReport) result.ServerCard {
	return result.ServerCard{Card: c.Name, Driver: c.Driver, MTU: c.MTU, Speed: c.Speed, Queues: c.Queues, Interrupts: c.Interrupts, Bond: c.Bond}
}

// Isolated says in words which processors are isolated from the scheduler; "" for none.
func Isolated(c result.CPU) string {
	if c.Isolated == "" {
		return ""
	}
	return fmt.Sprintf(" (CPU %s isolated)", c.Isolated)
}

// Close ends what runs on the machines, and waits until they have given back everything. It is idempotent.
func (s *Servers) Close() error {
	s.stop()
	s.asking.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := make([]error, len(s.links))
	var group sync.WaitGroup
	for i, l := range s.links {
		if l == nil {
			continue
		}
		group.Go(func() {
			_ = s.machines[i].Close() // it closes the link, too
			if err := l.Link.Close(); err != nil {
				failed[i] = l.Fail("leave", err)
			}
		})
	}
	group.Wait()
	s.links = nil
	return errors.Join(failed...)
}
