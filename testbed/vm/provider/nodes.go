package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
)

// wires is how many networks can stand side by side between guests: each has a card of its own in every guest.
const wires = 16

// NodesMost is how many guests are joined: a wire has two ends.
const NodesMost = 2

// guestMTU is the largest that the guests' cards take.
const guestMTU = 9000

// Nodes is the provider of testbeds each of whose nodes is a guest.
type Nodes struct {
	*joined.Driver
	image    image.Image
	machines []*joined.Machine
	booted   []*vm.Guest
}

var _ testbed.Provider = (*Nodes)(nil)

// Capabilities implements testbed.Provider.
func (g *Nodes) Capabilities() testbed.Capabilities {
	all := g.Driver.Capabilities()
	all.Program = program
	all.Describe = func(_ context.Context, e result.Environment) (result.Environment, []string, error) {
		e = describe(e, g.image, g.booted[0].Machine.Accel)
		e.Kernel = g.booted[0].Hello.Kernel
		return e, []string{"each node is a guest of its own; what they send one another goes through virtio network cards, one queue each, and through QEMU"}, nil
	}
	return all
}

// Close ends the guests.
func (g *Nodes) Close() error {
	var err error
	for _, m := range g.machines {
		err = errors.Join(err, m.Close())
	}
	for _, b := range g.booted {
		err = errors.Join(err, b.Close())
	}
	return err
}

// OpenNodes boots two guests of the image that are joined by wires.
func OpenNodes(ctx context.Context, i image.Image) (g *Nodes, err error) {
	sent, err := machine.SentProgram()
	if err != nil {
		return nil, err
	}
	machines := make([]vm.Machine, NodesMost)
	cards := make([][]string, NodesMost)
	var ends []*os.File
	defer func() {
		for _, e := range ends {
			err = errors.Join(err, e.Close())
		}
	}()
	for w := range wires {
		a, b, err := vm.Wire()
		if err != nil {
			return nil, err
		}
		ends = append(ends, a, b)
		for n, end := range []*os.File{a, b} {
			mac := fmt.Sprintf("52:54:00:6e:%02x:%02x", n+1, w+1)
			machines[n].Program = sent
			machines[n].Links = append(machines[n].Links, vm.Link{MAC: mac, End: end, MTU: guestMTU})
			cards[n] = append(cards[n], mac)
		}
	}
	g = &Nodes{image: i, booted: make([]*vm.Guest, NodesMost)}
	var group errgroup.Group
	for n := range machines {
		group.Go(func() (err error) {
			g.booted[n], err = vm.Boot(ctx, i, machines[n])
			return err
		})
	}
	err = group.Wait()
	nodes := make([]joined.Node, NodesMost)
	for n, b := range g.booted {
		if err != nil {
			break
		}
		// It lives as long as the guest.
		var p *vm.Process
		if p, err = b.Exec(context.WithoutCancel(ctx), vm.Command{Path: program, Args: []string{joined.Verb}}); err == nil {
			var m *joined.Machine
			if m, err = joined.Connect(ctx, p); err == nil {
				g.machines = append(g.machines, m)
				nodes[n] = joined.Node{Machine: m, Cards: cards[n]}
			}
		}
	}
	if err != nil {
		g.booted = slices.DeleteFunc(g.booted, func(b *vm.Guest) bool { return b == nil })
		return nil, errors.Join(err, g.Close())
	}
	g.Driver = joined.NewDriver(Kind, network.Catalogue(), nodes)
	return g, nil
}
