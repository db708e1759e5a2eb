// Package provider is the virtual machine as a kind of testbed: a lab in one guest, in which this program carries the whole run out;
// a guest for each node; and guests whose clock counts instructions.
package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
	"netdelta/testbed/lab/plugin"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
	"netdelta/unit"
)

// Kind is the name of the provider.
const Kind = "vm"

// program is where guests have this program.
const program = "/netdelta"

// Lab is the provider of labs in a guest: what is measured in it is measured by this program inside.
type Lab struct {
	// Image finds the guest's image, or builds it.
	Image func(context.Context) (image.Image, error)
}

var _ testbed.Provider = Lab{}

// errInside is the error of what only the program in the guest can do.
var errInside = errors.New("testbeds in a guest are opened by the program that runs there")

// Kind implements testbed.Provider.
func (Lab) Kind() string { return Kind }

// Supports implements testbed.Provider: the program inside finds out.
func (Lab) Supports(context.Context, testbed.Spec) error { return errInside }

// Open implements testbed.Provider.
func (Lab) Open(context.Context, testbed.Spec) (testbed.Testbed, error) { return nil, errInside }

// Capabilities implements testbed.Provider.
func (p Lab) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{Networks: network.Catalogue(), PinsCPUs: true, BuildsLinks: true, OwnsNodes: true, Lacking: lacking, Guest: p.boot, Counter: p.counter}
}

// lacking implements testbed.Capabilities.Lacking, before a guest is booted.
func lacking(_ context.Context, names []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(names), image.Has), nil
}

// A guest holds the agents of all cells at once, a few MiB each.
const (
	memoryLeast = 1 * unit.GiB
	memoryMost  = 6 * unit.GiB
	memoryShare = 4 // it may take one part in so many of what is free
)

// boot boots a guest for a whole run.
func (p Lab) boot(ctx context.Context, s testbed.GuestSpec) (*testbed.Guest, error) {
	img, err := p.Image(ctx)
	if err != nil {
		return nil, err
	}
	free, err := machine.FreeMemory()
	if err != nil {
		return nil, err
	}
	m := vm.Machine{Files: files(s), Cards: cards(s), Archives: archives(s.Programs), Memory: min(max(free/memoryShare, memoryLeast), memoryMost)}
	if m.Cards > 0 {
		m.Memory = min(m.Memory, vm.MostMemoryWithCards)
	}
	m.Memory -= m.Memory % unit.MiB
	g, err := vm.Boot(ctx, img, m)
	if err != nil {
		return nil, err
	}
	// Not killed by an interrupt: it ends in good order when its standard input does.
	process, err := g.Exec(context.WithoutCancel(ctx), vm.Command{Path: program, Args: s.Args})
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return &testbed.Guest{
		Program:  bounded{process, m.Memory},
		Describe: func(e result.Environment) result.Environment { return describe(e, img, g.Machine.Accel) },
		Close:    g.Close,
	}, nil
}

// archives are what a guest has in addition to its base; nil is as usual.
func archives(programs bool) []image.Archive {
	if !programs {
		return nil
	}
	return []image.Archive{image.Tools, image.CNI, image.Services}
}

// bounded is a program in a guest that has so much memory.
type bounded struct {
	*vm.Process
	memory unit.Bytes
}

// Wait implements testbed.GuestProgram. To the error of a program that was killed it adds what kills there.
func (b bounded) Wait() error {
	err := b.Process.Wait()
	var exit *rpc.ExitError
	if !errors.As(err, &exit) || unix.Signal(exit.Exit.Signal) != unix.SIGKILL {
		return err
	}
	return fmt.Errorf("%w: the guest's memory of %v was most likely full; run fewer cells at once (--networks, --workloads) or swap networks live (--blocks 6)", err, b.memory)
}

// describe adds to an environment what only the host knows of its guest.
func describe(e result.Environment, img image.Image, accel vm.Accel) result.Environment {
	e.Virtual = fmt.Sprintf("QEMU %s, %s", img.QEMU, accel)
	versions := map[string]string{"qemu": img.QEMU, "accelerator": string(accel), "image": img.ID()}
	maps.Copy(versions, e.Versions)
	e.Versions = versions
	return e
}

// cards is how many network cards with virtual functions a guest needs: one for each node, where a network gives them to
// pods.
func cards(s testbed.GuestSpec) int {
	for _, name := range s.Networks {
		if p, ok := planned(s, name); ok && slices.ContainsFunc(p.Ops, func(op network.Op) bool { _, is := op.(network.Card); return is }) {
			return s.Spec.Nodes
		}
	}
	return 0
}

// files returns the files of this machine that networks need.
func files(s testbed.GuestSpec) []vm.File {
	var all []vm.File
	for _, n := range s.Networks {
		if name, is := strings.CutPrefix(n, network.CNIPrefix); is {
			all = append(all, vm.File{Host: name, Guest: filepath.Join("/", name)})
			all = append(all, pluginFiles(s, n)...)
		}
	}
	return all
}

// pluginFiles are the programs of this machine by which a network of CNI plugins attaches its pods. Those that are missing here
// are missing in the guest too, which says so.
func pluginFiles(s testbed.GuestSpec, name string) []vm.File {
	p, ok := planned(s, name)
	if !ok {
		return nil
	}
	var files []vm.File
	for _, op := range p.Ops {
		a, is := op.(network.Attach)
		if !is {
			continue
		}
		for _, one := range a.Plugins {
			file := vm.File{Host: plugin.Find(one, plugin.Path()), Guest: path.Join("/opt/cni/bin", one)}
			if file.Host != "" && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// planned plans a network as far as it is the same under all conditions.
func planned(s testbed.GuestSpec, name string) (network.Plan, bool) {
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		return network.Plan{}, false // the guest says so
	}
	t, err := network.NewTopology(network.Layout{Nodes: s.Spec.Nodes, PodsPerNode: s.Spec.PodsPerNode, Family: result.IPv4, MTU: s.Spec.Link.MTU})
	if err != nil {
		return network.Plan{}, false
	}
	p, err := n.Plan(t)
	return p, err == nil
}

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

// OpenNodes boots two guests of the image that are joined by wires. programs says that workloads need external programs.
func OpenNodes(ctx context.Context, i image.Image, programs bool) (g *Nodes, err error) {
	sent, err := machine.SentProgram()
	if err != nil {
		return nil, err
	}
	machines := make([]vm.Machine, NodesMost)
	joining := make([][][]string, NodesMost)
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
			machines[n].Archives = archives(programs)
			machines[n].Links = append(machines[n].Links, vm.Link{MAC: mac, End: end, MTU: guestMTU})
			joining[n] = append(joining[n], []string{mac})
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
				nodes[n] = joined.Node{Machine: m, Wires: joining[n]}
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
