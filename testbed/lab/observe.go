package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
	"netdelta/unit"
)

// eachReader calls f for each namespace with what reads its counters. doing names what is read, for errors.
func (l *Testbed) eachReader(ctx context.Context, doing string, f func(where network.Space, s *space, g *nsmonitor.CounterReader) error) error {
	err := l.eachSpace(ctx, func(where network.Space, s *space) error {
		g, err := s.counts()
		if err != nil {
			return err
		}
		if err := f(where, s, g); err != nil {
			return fmt.Errorf("in %s: %w", s.name, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// Counters implements testbed.Observer.
func (l *Testbed) Counters(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	all := map[network.Device]testbed.Counters{}
	return all, l.eachReader(ctx, "read the counters", func(where network.Space, _ *space, g *nsmonitor.CounterReader) error {
		devices, err := g.Devices()
		for _, d := range devices {
			all[network.Device{In: where, Name: d.Name}] = d.Counters
		}
		return err
	})
}

// Drops counts what was dropped in all namespaces, the switch's among them.
func (l *Testbed) Drops(ctx context.Context) ([]result.Drop, error) {
	var all []result.Drop
	err := l.eachReader(ctx, "read what was dropped", func(_ network.Space, s *space, g *nsmonitor.CounterReader) error {
		drops, err := g.Drops()
		for _, d := range drops {
			d.Device = s.name + "/" + d.Device
			all = append(all, d)
		}
		return err
	})
	return all, err
}

// Stacks implements testbed.Observer.
func (l *Testbed) Stacks(ctx context.Context) (map[network.Space]testbed.Stack, error) {
	all := map[network.Space]testbed.Stack{}
	return all, l.eachReader(ctx, "read what the IP stacks counted", func(where network.Space, _ *space, g *nsmonitor.CounterReader) (err error) {
		all[where], err = g.Stack()
		return err
	})
}

// Links implements testbed.Testbed.
func (l *Testbed) Links(ctx context.Context) ([]result.Link, error) {
	var all []result.Link
	err := l.eachSpace(ctx, func(where network.Space, s *space) error {
		links, err := s.links()
		if err != nil {
			return err
		}
		return s.ns.Do(func() error {
			for _, link := range links {
				a := link.Attrs()
				o, err := Offloads(a.Name)
				if err != nil {
					return fmt.Errorf("read the offloads of %s in %s: %w", a.Name, s.name, err)
				}
				one := result.Link{Network: l.Plan().Network, Where: where.String(), Name: a.Name, Kind: link.Type(), MTU: a.MTU, Offloads: o}
				if one.Kind == "bridge" && where.Kind == network.NodeSpace {
					one.Netfilter = testbed.BridgeNetfilter(l.Spec().Family)
				}
				all = append(all, one)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list the links: %w", err)
	}
	return all, nil
}

// eachSpace calls f for each namespace, in the plan's order.
func (l *Testbed) eachSpace(ctx context.Context, f func(network.Space, *space) error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return ErrClosed
	}
	for _, where := range l.Plan().Spaces() {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := l.spaces[where]
		if s == nil {
			return fmt.Errorf("the lab has no namespace %s: its last swap failed", where)
		}
		if err := f(where, s); err != nil {
			return err
		}
	}
	return nil
}

// Sysctls implements testbed.Testbed. Settings that this kernel does not have are left out.
func (l *Testbed) Sysctls(ctx context.Context) (map[string]string, error) {
	var values map[string]string
	err := l.eachSpace(ctx, func(where network.Space, s *space) error {
		if where != network.InNode(0) {
			return nil
		}
		names := testbed.Settings()
		for _, o := range l.Plan().Settings {
			if o.In == where {
				names = append(names, o.Name)
			}
		}
		return s.ns.Do(func() (err error) {
			values, err = testbed.ReadSettings(names)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the kernel's settings: %w", err)
	}
	return values, nil
}

// Fit implements testbed.Observer. The datagram goes to the last of the pod's ports, and is sent by this program.
func (l *Testbed) Fit(ctx context.Context, from, to testbed.Pod, size unit.Bytes) error {
	err := l.between(ctx, from, to, func(at netip.AddrPort) error { return nsmonitor.SendWhole(at, size) })
	if err != nil {
		return fmt.Errorf("send a packet of %d bytes from %s to %s: %w", int64(size), from.Name(), to.Name(), err)
	}
	return nil
}

// LargestPacket finds out how large packets can be that get from one pod to another and back, and the MTU of the way's first device.
func (l *Testbed) LargestPacket(ctx context.Context, from, to testbed.Pod) (way, device int, err error) {
	err = l.between(ctx, from, to, func(at netip.AddrPort) (err error) {
		way, device, err = nsmonitor.LargestPacket(at.Addr())
		return err
	})
	return way, device, err
}

// between calls f in the namespace of a pod, with where it reaches the last port of another.
func (l *Testbed) between(ctx context.Context, from, to testbed.Pod, f func(at netip.AddrPort) error) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	a, b, ok := l.Numbers(from, to)
	switch {
	case !ok:
		return errors.New("they are not both pods of this testbed")
	case l.closed:
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	s := l.spaces[l.Plan().Pods[a].In]
	if s == nil {
		return errors.New("the pod has no network namespace")
	}
	_, last := to.Ports()
	at := l.Plan().Endpoint(a, b, last)
	return s.ns.Do(func() error { return f(at) })
}

// configWatch watches all namespaces of a lab.
type configWatch struct {
	names []string
	each  []*nsmonitor.ConfigWatch
}

// WatchConfig watches the configuration of all namespaces until the watch is closed.
func (l *Testbed) WatchConfig(ctx context.Context) (testbed.ConfigWatch, error) {
	var mu sync.Mutex
	w := &configWatch{}
	var group errgroup.Group
	err := l.eachSpace(ctx, func(where network.Space, s *space) error {
		group.Go(func() error {
			one, err := nsmonitor.WatchConfig(s.ns.Do, watchedSysctls(l.Plan(), where))
			if err != nil {
				return fmt.Errorf("in %s: %w", s.name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			w.names, w.each = append(w.names, s.name), append(w.each, one)
			return nil
		})
		return nil
	})
	if err = errors.Join(err, group.Wait()); err != nil {
		return nil, errors.Join(fmt.Errorf("watch the configuration: %w", err), w.Close())
	}
	return w, nil
}

// watchedSysctls are the settings of a namespace that change what is measured: some of TCP's, and those that the plan makes. They are
// few, since they are read while a build could be measured.
func watchedSysctls(p network.Plan, where network.Space) []string {
	names := []string{
		"net.ipv4.ip_forward", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_ecn", "net.ipv4.tcp_limit_output_bytes",
		"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_rmem", "net.ipv4.tcp_sack", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_timestamps",
		"net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem",
	}
	for _, o := range p.Settings {
		if o.In == where && !slices.Contains(names, o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}

// End implements testbed.ConfigWatch.
func (w *configWatch) End() ([]result.ConfigChange, error) {
	var all []result.ConfigChange
	for i, one := range w.each {
		changes, err := one.End()
		if err != nil {
			return nil, fmt.Errorf("read the configuration of %s: %w", w.names[i], err)
		}
		for _, c := range changes {
			c.Device = strings.TrimSuffix(w.names[i]+"/"+c.Device, "/")
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b result.ConfigChange) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Device, b.Device)) })
	return all, nil
}

// Close implements testbed.ConfigWatch.
func (w *configWatch) Close() error {
	return errors.Join(gather.Each(w.each, func(one *nsmonitor.ConfigWatch) error { return one.Close() })...)
}
