package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/gather"
	"netdelta/internal/owner"
	"netdelta/internal/suggest"
	"netdelta/network"
	"netdelta/testbed"
)

// Testbed is a lab that is up. It is safe for concurrent use.
type Testbed struct {
	*testbed.Planned
	driver *Driver
	mark   string    // what its namespaces carry, and the environment of its processes
	part   *NodePart // nil for the whole

	// mu is held for writing while namespaces and devices change.
	mu     sync.RWMutex
	spaces map[network.Space]*space
	ruled  map[network.Space][]network.Op // what left rules there
	notes  []string                       // what could not be had as the conditions ask
	closed bool
	// companions are what the network has besides its devices.
	companions companions
	// joinings are those that live until the processes have ended.
	joinings []*joining
	// visiting is held while this program is in a control group of the pods.
	visiting sync.Mutex

	running processes
	taps    taps
}

var _ testbed.Observer = (*Testbed)(nil)

// Instruments implements testbed.Testbed.
func (l *Testbed) Instruments() testbed.Instruments {
	return testbed.Instruments{Observer: l, WatchConfig: l.WatchConfig, Drops: l.Drops, Within: l.Within, Carriers: l.Carriers, Versions: l.Versions, Notes: l.Notes}
}

// ErrClosed is the error of a lab that was closed.
var ErrClosed = errors.New("the lab is closed")

func newTestbed(d *Driver, spec testbed.Spec, t network.Topology) (*Testbed, error) {
	self, err := owner.Self()
	if err != nil {
		return nil, err
	}
	l := &Testbed{driver: d, mark: fmt.Sprintf("%s-%d-%d", self, d.made, d.labs.Add(1)), spaces: map[network.Space]*space{}}
	l.Planned = testbed.NewPlanned(spec, t, l.startIn)
	return l, nil
}

// build makes the namespaces that a network needs and are not there, and the network.
func (l *Testbed) build(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.planned(ctx, name)
	if err != nil {
		return err
	}
	return l.carryOut(ctx, p)
}

// planned plans a network, or its part.
func (l *Testbed) planned(ctx context.Context, name string) (network.Plan, error) {
	p, err := l.driver.plan(ctx, name, l.Topology)
	if err != nil || l.part == nil {
		return p, err
	}
	return p.Part(l.part.Node)
}

// carryOut makes what a plan asks for. Namespaces of pods that exist are used again; what was in them is gone by now.
func (l *Testbed) carryOut(ctx context.Context, p network.Plan) error {
	if err := l.makeSpaces(ctx, p); err != nil {
		return err
	}
	l.ruled = ruledSpaces(p.Ops)
	b := newBuilder(l.spaces)
	b.mark, b.cards, b.fixed = l.mark, &l.driver.cards, l.Topology.PodsOutlive
	if l.part != nil {
		b.uplinks = l.part.Cards
	}
	err := b.apply(ctx, p.Underlay)
	if err == nil {
		err = b.apply(ctx, p.Ops)
	}
	// Also after a failure, so that Close finds them.
	l.companions = b.companions
	if err != nil {
		return err
	}
	if err := b.ready(ctx); err != nil {
		return err
	}
	if err := l.companions.start(ctx, l); err != nil {
		return err
	}
	l.Present(b.relearn(p))
	l.notes = b.notes
	return nil
}

// makeSpaces makes the namespaces that are missing and writes the settings of all.
func (l *Testbed) makeSpaces(ctx context.Context, p network.Plan) error {
	settings := map[network.Space][]network.Sysctl{}
	for _, o := range p.Settings {
		settings[o.In] = append(settings[o.In], o)
	}
	wanted := p.Spaces()
	made := make([]*space, len(wanted))
	var group errgroup.Group
	for i, where := range wanted {
		old := l.spaces[where]
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if old != nil {
				return old.set(settings[where]...)
			}
			made[i], err = newSpace(where.String(), l.mark, settings[where])
			return err
		})
	}
	err := group.Wait()
	// Also after a failure, so that Close finds them.
	for i, s := range made {
		if s != nil {
			l.spaces[wanted[i]] = s
		}
	}
	return err
}

// startIn carries out a pod's Start. The context covers the start, not the life of the process.
func (l *Testbed) startIn(ctx context.Context, pod int, cmd testbed.Command) (testbed.Process, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	name := l.Topology.Pods[pod].Name
	started, err := l.start(ctx, pod, cmd, name)
	if err != nil {
		return nil, fmt.Errorf("start %s in %s: %w", cmd.Path, name, err)
	}
	l.running.add(started)
	return started, nil
}

func (l *Testbed) start(ctx context.Context, pod int, cmd testbed.Command, name string) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.closed {
		return nil, ErrClosed
	}
	s := l.spaces[l.Plan().Pods[pod].In]
	if s == nil {
		return nil, errors.New("the pod has no network namespace")
	}
	group, err := l.enter()
	if err != nil {
		return nil, err
	}
	defer closeFiles(group)
	return startIn(s.ns, group, cmd, l.mark, name)
}

// Swap implements testbed.Testbed. When it fails, the pods and their processes are there still, without a network; another
// Swap may fix that.
func (l *Testbed) Swap(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("swap to network %s: %w", name, ErrClosed)
	}
	if !l.Topology.PodsOutlive {
		return fmt.Errorf("swap to network %s: the lab was opened without pods that outlive their network", name)
	}
	// Nothing is torn down for a network that can't be had.
	p, err := l.planned(ctx, name)
	if err != nil {
		return fmt.Errorf("swap the network: %w", err)
	}
	if err := l.tearDown(); err != nil {
		return fmt.Errorf("swap network %s for %s: %w", l.Spec().Network, name, err)
	}
	if err := l.carryOut(ctx, p); err != nil {
		return fmt.Errorf("swap network %s for %s: %w", l.Spec().Network, name, err)
	}
	return nil
}

// tearDown empties the pods' namespaces and gives up all others.
func (l *Testbed) tearDown() error {
	ended := l.companions.close()
	l.companions = nil
	var group errgroup.Group
	for where, s := range l.spaces {
		if where.Kind != network.PodSpace {
			continue
		}
		group.Go(func() error {
			if err := s.unrule(l.ruled[where]); err != nil {
				return err
			}
			return s.strip()
		})
	}
	err := errors.Join(ended, group.Wait(), l.taps.finish())
	for where, s := range l.spaces {
		if where.Kind != network.PodSpace {
			delete(l.spaces, where)
			err = errors.Join(err, s.close())
		}
	}
	return err
}

// Close implements testbed.Testbed.
func (l *Testbed) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := errors.Join(l.running.killAll(), l.companions.close(), killStrays(l.mark), l.taps.finish())
	for _, j := range l.joinings {
		err = errors.Join(err, j.finish())
	}
	for _, s := range l.spaces {
		err = errors.Join(err, s.close())
	}
	clear(l.spaces)
	if err != nil {
		return fmt.Errorf("close the lab: %w", err)
	}
	return nil
}

// killStrays ends the processes of the lab with a mark. It looks again after each pass: a process may have started another one before
// it was ended.
func killStrays(mark string) error {
	for range cleanupPasses {
		found, err := inhabitants()
		if err != nil {
			return err
		}
		own := gather.Where(found, func(p owner.Process) bool { return p.Mark == mark })
		if len(own) == 0 {
			return nil
		}
		if left := end(own); len(left) > 0 {
			return fmt.Errorf("processes that can't be ended: %s", strings.Join(left, ", "))
		}
	}
	return fmt.Errorf("processes start others as fast as they are ended: %d times there were new ones", cleanupPasses)
}

// Mark is what the environment variable owner.Variable holds in each process of this lab. A process that carries it, or is in one of
// the lab's namespaces, ends with the lab, no matter what started it.
func (l *Testbed) Mark() string { return l.mark }

// NameError says that a lab has no pod or node of this name.
type NameError struct {
	Name    string
	Nearest string // the known name closest to it, "" where none is close
	Known   []string
}

// Error implements error.
func (e *NameError) Error() string {
	if e.Nearest != "" {
		return fmt.Sprintf("there is no pod or node %q in this lab: did you mean %q?", e.Name, e.Nearest)
	}
	const shown = 12
	known := strings.Join(e.Known[:min(len(e.Known), shown)], ", ")
	if len(e.Known) > shown {
		known += ", ..."
	}
	return fmt.Sprintf("there is no pod or node %q in this lab: there are %s", e.Name, known)
}

// Within calls f with a descriptor of the network namespace of a pod, a node or the switch, which stays open meanwhile.
// Sockets that f opens are to the network like the pods' own. The
// error for an unknown name is a *NameError.
func (l *Testbed) Within(name string, f func(fd int) error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return ErrClosed
	}
	where, err := l.place(name)
	if err != nil {
		return err
	}
	s := l.spaces[where]
	if s == nil {
		return fmt.Errorf("%s has no network namespace: the last swap failed; another may fix that", name)
	}
	return s.ns.WithFD(func(fd int) error { return l.amongPods(func() error { return f(fd) }) })
}

// place finds the namespace of a pod, which under host networking is its node's, of a node, or of the switch.
func (l *Testbed) place(name string) (network.Space, error) {
	var known []string
	for j, p := range l.Topology.Pods {
		if p.Name == name {
			return l.Plan().Pods[j].In, nil
		}
		known = append(known, p.Name)
	}
	for i, n := range l.Topology.Nodes {
		if n.Name == name {
			return network.InNode(i), nil
		}
		known = append(known, n.Name)
	}
	if name == network.InSwitch().String() {
		return network.InSwitch(), nil
	}
	known = append(known, network.InSwitch().String())
	nearest, _ := suggest.Nearest(name, known)
	return network.Space{}, &NameError{Name: name, Nearest: nearest, Known: known}
}
