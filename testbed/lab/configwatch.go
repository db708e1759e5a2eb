package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
)

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
	var errs []error
	for _, one := range w.each {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}
