package servers

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"netdelta/internal/tail"
	"netdelta/testbed"
	"netdelta/testbed/servers/server"
)

// Carrier reaches one machine.
type Carrier interface {
	// String is how the user named the machine.
	String() string
	// Address is the name or address of that, without a user and a port.
	Address() string
	// Begin brings the program to the machine and starts a supervisor there with an order, of which it fills in the address by which the
	// machine was reached. The context covers the start. On an error nothing is left there.
	Begin(ctx context.Context, order server.Order) (Link, error)
}

// Link leads to the standard input and output of a supervisor.
type Link interface {
	io.ReadWriter
	// CloseWrite ends the supervisor's input: then it gives back everything and ends.
	CloseWrite() error
	// Close is CloseWrite, and waits until the supervisor has ended, as long as Leave says. It is idempotent.
	Close() error
	// Fail closes the link, and adds to an error what was said on the way there and what to do about it.
	Fail(doing string, err error) error
}

// Silence is how long a connection may be half open unless it is said otherwise.
const Silence = 40 * time.Second

// LastWords is how much a supervisor may say after the end of its input.
const LastWords = 8 << 20

// Leave is how long a supervisor with an order may take to give back everything.
func Leave(o server.Order) time.Duration { return cmp.Or(o.Silence, Silence) * 3 / 4 }

// conversation is a link whose supervisor has begun, as joined.Machine has it: Close ends the machine's input and does not wait.
type conversation struct {
	Link
	name   string
	in     *bufio.Reader
	report server.Report
	// returned says that the machine was lost and came back, until it is noted.
	returned string
}

// begin starts a supervisor.
func begin(ctx context.Context, at Carrier, order server.Order) (*conversation, error) {
	l, err := at.Begin(ctx, order)
	if err != nil {
		return nil, err
	}
	return &conversation{Link: l, name: at.String(), in: bufio.NewReader(l)}, nil
}

// Read implements io.Reader.
func (c *conversation) Read(b []byte) (int, error) { return c.in.Read(b) }

// Close implements io.Closer.
func (c *conversation) Close() error { return c.CloseWrite() }

// answerMost bounds what a supervisor says of its machine.
const answerMost = 4 << 20

// answer reads the first line that the supervisor writes.
func (c *conversation) answer(into any) error {
	line, err := tail.Line(c.in, answerMost)
	if errors.Is(err, io.EOF) {
		return errors.New("the connection ended")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}

// Seen is what the doctor finds of one machine.
type Seen struct {
	Name   string
	Report server.Report
	// Ways lead to the cards of the others that were looked at.
	Ways []server.Way
	// Err is why it could not be looked at.
	Err error
}

// Look looks at all machines and at the ways between their cards, and changes nothing there.
func Look(ctx context.Context, machines []Carrier, nic NIC) []Seen {
	all := make([]Seen, len(machines))
	each(machines, func(i int, at Carrier) {
		all[i].Name = at.String()
		all[i].Err = once(ctx, at, server.Order{Do: server.Look, Mode: nic.Mode, Card: nic.Card}, &all[i].Report)
	})
	each(machines, func(i int, at Carrier) {
		order := server.Order{Do: server.Ways}
		for k, other := range all {
			if address := reachable(other.Report.Card); k != i && address != "" {
				order.Peers = append(order.Peers, address)
			}
		}
		if all[i].Err == nil && len(order.Peers) > 0 {
			all[i].Err = once(ctx, at, order, &all[i].Ways)
		}
	})
	return all
}

// reachable is the address by which others look at the way to a card, "" where it has none: one of IPv4 where there is one.
func reachable(c server.CardReport) (text string) {
	for _, one := range c.Addresses {
		p, err := netip.ParsePrefix(one)
		switch a := p.Addr(); {
		case err != nil || a.IsLinkLocalUnicast(): // which says nothing without its card
		case a.Is4():
			return a.String()
		case text == "":
			text = a.String()
		}
	}
	return text
}

// Cleaned is what was removed and restored on one machine.
type Cleaned struct {
	Name    string
	Removed []string
	Err     error
}

// Clean puts back what killed runs left on all machines. Runs that are under way are left alone.
func Clean(ctx context.Context, machines []Carrier) []Cleaned {
	all := make([]Cleaned, len(machines))
	each(machines, func(i int, at Carrier) {
		var done server.Cleaned
		err := once(ctx, at, server.Order{Do: server.Clean}, &done)
		all[i] = Cleaned{at.String(), done.Removed, err}
	})
	return all
}

// each calls f for all machines at once, and waits.
func each(machines []Carrier, f func(i int, at Carrier)) {
	var group sync.WaitGroup
	for i, at := range machines {
		group.Go(func() { f(i, at) })
	}
	group.Wait()
}

// once has a machine carry out an order that has one answer.
func once(ctx context.Context, at Carrier, order server.Order, into any) error {
	order.Folder = newSession().folder()
	c, err := begin(ctx, at, order)
	if err != nil {
		return err
	}
	err = c.answer(into)
	if closed := c.Link.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return c.Fail(order.Do, err)
	}
	return nil
}

// Return is how long a machine that was lost may take to be there again unless it is said otherwise: as long as a server takes to start.
const Return = 5 * time.Minute

// between is how long it takes from one try to reach a machine to the next.
const between = time.Second

// errLost is the end of a conversation that was to go on.
var errLost = errors.New("the connection ended")

// Open implements testbed.Provider. Machines that were lost since are reached again first, whether their connection was cut or they have
// started again. Testbeds that were open there stay lost. One that was switched off says nothing of it: where that turns out while the testbed
// is opened, it is reached again, too, and the testbed is opened once more.
func (s *Servers) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if _, err := s.reachLost(ctx); err != nil {
		return nil, err
	}
	opened, err := s.Driver.Open(ctx, spec)
	if err != nil {
		lost, failed := s.reachLost(ctx)
		if !lost || failed != nil {
			return nil, errors.Join(err, failed)
		}
		if opened, err = s.Driver.Open(ctx, spec); err != nil {
			return nil, err
		}
	}
	return noted{opened, s}, nil
}

// reachLost reaches all machines again that were lost, at once, and says whether there were any.
func (s *Servers) reachLost(ctx context.Context) (found bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := make([]error, len(s.machines))
	var group sync.WaitGroup
	for i, m := range s.machines {
		select {
		case <-m.Done():
			found = true
			group.Go(func() { failed[i] = s.reachAgain(ctx, i) })
		default:
		}
	}
	group.Wait()
	for i, l := range s.links {
		if note := l.returned; note != "" && failed[i] == nil {
			s.notes = append(s.notes, note)
			l.returned = ""
		}
	}
	return found, errors.Join(failed...)
}

// reachAgain makes a node of a machine that was lost. What was there ends within the time of its silence at the latest, which is waited
// for; what a supervisor left that died with its machine is removed.
func (s *Servers) reachAgain(ctx context.Context, i int) error {
	if s.gone[i] != nil {
		return s.gone[i]
	}
	at, began := s.options.Machines[i], time.Now()
	lost := s.links[i].Fail("keep the connection to", errLost)
	var cleaned error
	for {
		c, m, err := node(ctx, at, s.order(i))
		if err == nil {
			c.returned = fmt.Sprintf("node%d was lost while builds were under way, which failed, and was there again after %s (%v)", i, time.Since(began).Round(time.Second), lost)
			s.links[i], s.machines[i] = c, m
			s.Replace(i, m)
			s.watch(m)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > s.options.Return {
			s.gone[i] = fmt.Errorf("%w; it was not there again within %s: %w", lost, s.options.Return, errors.Join(err, cleaned))
			return s.gone[i]
		}
		var done server.Cleaned
		cleaned = once(ctx, at, server.Order{Do: server.Clean}, &done)
		select {
		case <-time.After(between):
		case <-ctx.Done():
		}
	}
}

// noted is a testbed whose notes say which machines were lost and came back.
type noted struct {
	testbed.Testbed
	servers *Servers
}

// Instruments implements testbed.Testbed.
func (n noted) Instruments() testbed.Instruments {
	all := n.Testbed.Instruments()
	all.Notes = func() []string {
		n.servers.mu.Lock()
		defer n.servers.mu.Unlock()
		return n.servers.notes
	}
	return all
}
