package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/testbed/joined"
	"netdelta/testbed/remote"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
)

// wires is how many networks can stand side by side between guests: each has a card of its own in every guest.
const wires = 16

// guestNodes is how many guests are joined: a wire has two ends.
const guestNodes = 2

// guestMTU is the largest that the guests' cards take.
const guestMTU = 9000

// guests are the machines of a testbed whose nodes are guests.
type guests struct {
	image    image.Image
	driver   *joined.Driver
	machines []*remote.Machine
	booted   []*vm.Guest
}

// close ends the guests.
func (g *guests) close() error {
	var err error
	for _, m := range g.machines {
		err = errors.Join(err, m.Close())
	}
	for _, b := range g.booted {
		err = errors.Join(err, b.Close())
	}
	return err
}

// bootNodes boots two guests that are joined by wires, and is a driver of testbeds whose nodes they are.
func (env *environment) bootNodes(ctx context.Context) (g *guests, err error) {
	i, err := env.buildImage(ctx, false)
	if err != nil {
		return nil, err
	}
	program, err := machine.SentProgram()
	if err != nil {
		return nil, err
	}
	machines := make([]vm.Machine, guestNodes)
	cards := make([][]string, guestNodes)
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
			machines[n].Program = program
			machines[n].Links = append(machines[n].Links, vm.Link{MAC: mac, End: end, MTU: guestMTU})
			cards[n] = append(cards[n], mac)
		}
	}
	g = &guests{image: i, booted: make([]*vm.Guest, guestNodes)}
	var group errgroup.Group
	for n := range machines {
		group.Go(func() (err error) {
			g.booted[n], err = vm.Boot(ctx, i, machines[n])
			return err
		})
	}
	err = group.Wait()
	nodes := make([]joined.Node, guestNodes)
	for n, b := range g.booted {
		if err != nil {
			break
		}
		// It lives as long as the guest.
		var p *vm.Process
		if p, err = b.Exec(context.WithoutCancel(ctx), vm.Command{Path: "/netdelta", Args: []string{remote.Verb}}); err == nil {
			m := remote.Connect(p)
			g.machines = append(g.machines, m)
			nodes[n] = joined.Node{Machine: m, Cards: cards[n]}
		}
	}
	if err != nil {
		g.booted = slices.DeleteFunc(g.booted, func(b *vm.Guest) bool { return b == nil })
		return nil, errors.Join(err, g.close())
	}
	g.driver = joined.NewDriver(vmTestbed, network.Catalogue(), nodes)
	return g, nil
}
