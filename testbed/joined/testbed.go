package joined

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// Testbed is a testbed whose nodes are machines. It is safe for concurrent use.
type Testbed struct {
	*testbed.Planned // there is no switch in its plan
	driver           *Driver
	wire             int // noWire where it has none
	found            bool
	slot             int    // of takePorts, where found
	parts            []part // of each node

	mu     sync.RWMutex // held for writing while the network changes
	closed bool
}

var _ testbed.Observer = (*Testbed)(nil)

// Instruments implements testbed.Testbed.
func (l *Testbed) Instruments() testbed.Instruments { return testbed.Instruments{Observer: l} }

// open calls f unless the testbed is closed, and keeps it open meanwhile.
func (l *Testbed) open(f func() error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return lab.ErrClosed
	}
	return f()
}

// all asks all nodes at once about their labs. The answers are in the nodes' order.
func all[R any](ctx context.Context, l *Testbed, op string, args any) ([]R, error) {
	answers := make([]R, len(l.parts))
	var group errgroup.Group
	for i, p := range l.parts {
		group.Go(func() (err error) {
			if answers[i], err = askLab[R](ctx, p, op, args); err != nil {
				return fmt.Errorf("node%d: %w", i, err)
			}
			return nil
		})
	}
	return answers, group.Wait()
}

// each is all where the testbed is open.
func each[R any](ctx context.Context, l *Testbed, op string) (answers []R, err error) {
	err = l.open(func() (err error) {
		answers, err = all[R](ctx, l, op, nil)
		return err
	})
	return answers, err
}

// Links implements testbed.Testbed.
func (l *Testbed) Links(ctx context.Context) ([]result.Link, error) {
	answers, err := each[[]result.Link](ctx, l, opLinks)
	return slices.Concat(answers...), err
}

// Sysctls implements testbed.Testbed.
func (l *Testbed) Sysctls(ctx context.Context) (values map[string]string, err error) {
	err = l.open(func() (err error) {
		values, err = askLab[map[string]string](ctx, l.parts[0], opSysctls, nil)
		return err
	})
	return values, err
}

// Counters implements testbed.Observer.
func (l *Testbed) Counters(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	answers, err := each[[]entry[network.Device, testbed.Counters]](ctx, l, opCounters)
	return merged(answers), err
}

// Stacks implements testbed.Observer.
func (l *Testbed) Stacks(ctx context.Context) (map[network.Space]testbed.Stack, error) {
	answers, err := each[[]entry[network.Space, testbed.Stack]](ctx, l, opStacks)
	return merged(answers), err
}

// partOf is the part with the node that a pod is on.
func (l *Testbed) partOf(pod int) part { return l.parts[l.numberOf(l.Topology.Pods[pod].Node)] }

// numberOf is the number of the part with a node.
func (l *Testbed) numberOf(node int) int { return min(node, len(l.parts)-1) }

// Fit implements testbed.Observer.
func (l *Testbed) Fit(ctx context.Context, from, to testbed.Pod, size unit.Bytes) error {
	a, b, ok := l.Numbers(from, to)
	if !ok {
		return errors.New("send a packet from one pod to another: they are not both pods of this testbed")
	}
	return l.open(func() error {
		_, err := askLab[any](ctx, l.partOf(a), opFit, fitArgs{a, b, size})
		return err
	})
}

// LargestPacket finds out how large packets can be that get from one pod to another and back.
func (l *Testbed) LargestPacket(ctx context.Context, from, to testbed.Pod) (found Largest, err error) {
	a, b, ok := l.Numbers(from, to)
	if !ok {
		return found, errors.New("look at the way between two pods: they are not both pods of this testbed")
	}
	err = l.open(func() (err error) {
		found, err = askLab[Largest](ctx, l.partOf(a), opLargest, fitArgs{From: a, To: b})
		return err
	})
	return found, err
}

// Tap implements testbed.Observer.
func (l *Testbed) Tap(ctx context.Context, spaces []network.Space) (testbed.Tap, error) {
	t := &tap{}
	err := l.open(func() error {
		for i, p := range l.parts {
			var own []network.Space
			for _, s := range spaces {
				if l.driver.whole() || s == network.InNode(i) || s.Kind == network.PodSpace && l.Topology.Pods[s.Index].Node == i {
					own = append(own, s)
				}
			}
			if len(own) == 0 {
				continue
			}
			number, err := askLab[int](ctx, p, opTap, own)
			if err != nil {
				return errors.Join(fmt.Errorf("node%d: %w", i, err), t.Close())
			}
			t.parts = append(t.parts, partTap{p.machine, number})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Swap implements testbed.Testbed.
func (l *Testbed) Swap(ctx context.Context, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("swap to network %s: %w", name, lab.ErrClosed)
	}
	_, p, err := l.driver.plan(l.Spec(), name)
	if err != nil {
		return fmt.Errorf("swap the network: %w", err)
	}
	if _, err := all[any](context.WithoutCancel(ctx), l, opSwap, name); err != nil {
		return err
	}
	l.Present(p)
	return nil
}

// Close implements testbed.Testbed. What was on a machine that is lost has ended with it.
func (l *Testbed) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	var group errgroup.Group
	for i, p := range l.parts {
		group.Go(func() error {
			_, err := askLab[any](context.Background(), p, opClose, nil)
			if err = p.machine.unlessLost(err); err != nil {
				return fmt.Errorf("node%d: %w", i, err)
			}
			return nil
		})
	}
	err := group.Wait()
	if l.wire != noWire {
		l.driver.giveBack(l.wire)
	} else if l.found {
		l.driver.giveBackPorts(l.slot)
	}
	if err != nil {
		return fmt.Errorf("close the testbed: %w", err)
	}
	return nil
}

// start carries out a pod's Start. The program is one of the pod's machine.
func (l *Testbed) start(ctx context.Context, pod int, cmd testbed.Command) (started testbed.Process, err error) {
	err = l.open(func() (err error) {
		started, err = l.partOf(pod).start(ctx, pod, cmd)
		return err
	})
	return started, err
}
