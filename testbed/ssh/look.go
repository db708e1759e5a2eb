package ssh

import (
	"context"
	"errors"
	"sync"

	"netdelta/testbed/ssh/server"
)

// Seen is what the doctor finds of one server.
type Seen struct {
	Node   Node
	Report server.Report
	// Err is why it could not be looked at.
	Err error
}

// Look looks at all servers, and changes nothing there.
func Look(ctx context.Context, o Options) []Seen {
	all := make([]Seen, len(o.Nodes))
	o.each(func(i int, n Node) {
		all[i].Node = n
		all[i].Err = o.once(ctx, n, server.Order{Do: server.Look, Mode: o.NIC.Mode, Card: o.NIC.Card}, &all[i].Report)
	})
	return all
}

// Cleaned is what was removed and restored on one server.
type Cleaned struct {
	Node    Node
	Removed []string
	Err     error
}

// Clean puts back what killed runs left on all servers. Runs that are under way are left alone.
func Clean(ctx context.Context, o Options) []Cleaned {
	all := make([]Cleaned, len(o.Nodes))
	o.each(func(i int, n Node) {
		var done server.Cleaned
		err := o.once(ctx, n, server.Order{Do: server.Clean}, &done)
		all[i] = Cleaned{n, done.Removed, err}
	})
	return all
}

// each calls f for all servers at once, and waits.
func (o Options) each(f func(i int, n Node)) {
	var group sync.WaitGroup
	for i, n := range o.Nodes {
		group.Go(func() { f(i, n) })
	}
	group.Wait()
}

// once has a server carry out an order that has one answer.
func (o Options) once(ctx context.Context, n Node, order server.Order, into any) error {
	order.Folder = newSession().folder()
	l, err := o.begin(ctx, n, order)
	if err != nil {
		return err
	}
	err = l.answer(into)
	if closed := l.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return l.failure(order.Do, errors.Join(err))
	}
	return nil
}
