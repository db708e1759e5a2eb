package block

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// Bounds of the parameters.
const (
	leastBlock  = 512
	mostBlock   = 16 * unit.MiB
	mostDepth   = 256
	mostClients = 16
)

// leastBurst is the shortest burst that says something: fio counts its length in whole milliseconds, and takes a third of a
// second to begin.
const leastBurst = 500 * time.Millisecond

// Workload is block.
func Workload() workload.Workload {
	known := &disks{}
	return workload.Workload{
		Name:     "block",
		Protocol: network.TCP,
		Summary:  "blocks of a store across the network, read and written by fio",
		UsedBy:   "volumes of pods: databases, virtual disks, anything on Ceph RBD or NBD",
		Headline: "rate",
		Metrics:  append([]workload.Metric{{Name: "rate", Unit: "1/s", Better: "higher"}}, engine.LatencyMetrics()...),
		Defaults: result.Params{CPU: "same", Store: "nbd", Operation: "randread", Block: 4 * unit.KiB, Depth: 1, Clients: 1},
		Check:    check,
		// The libraries of the stores choose their ports themselves.
		SourcePorts: func(result.Params) int { return 1 },
		Demand:      func(p result.Params) workload.Demand { return demand(p, known) },
		Serve:       serve,
		Dial:        dial,
	}
}

// fill gives zero values their defaults.
func fill(p result.Params) result.Params {
	if p.Store == "" {
		p.Store = stores()[0].name
	}
	if p.Operation == "" {
		p.Operation = "randread"
	}
	if p.Block == 0 {
		p.Block = 4 * unit.KiB
	}
	p.Depth, p.Clients = max(p.Depth, 1), max(p.Clients, 1)
	return p
}

// check returns an error that names the first parameter out of range, and the range.
func check(p result.Params) error {
	for _, check := range []func(result.Params) error{checkForeign, checkBlocks, checkVolume} {
		if err := check(p); err != nil {
			return fmt.Errorf("block: %w", err)
		}
	}
	return nil
}

// checkForeign refuses what only other workloads have.
func checkForeign(p result.Params) error {
	for _, have := range []struct {
		name string
		set  bool
	}{
		{"message", p.Message != 0},
		{"connections", p.Connections != 0},
		{"rate", p.Rate != 0},
		{"rate: search", p.Search},
		{"request rate", p.RequestRate != 0},
		{"busy poll", p.BusyPoll != 0},
		{"congestion control", p.CongestionControl != ""},
		{"nagle", p.Nagle},
	} {
		if have.set {
			return fmt.Errorf("%s is no parameter of this workload; leave it out", have.name)
		}
	}
	if places := []string{"", "same", "two", "any"}; !slices.Contains(places, p.CPU) {
		return fmt.Errorf("cpu %q is unknown: same, two or any", p.CPU)
	}
	if p.StorageClass != "" {
		return workload.Unused(p, "store", "operation", "block", "depth", "clients", "storage_class", "file")
	}
	return workload.Unused(p, "store", "operation", "block", "depth", "clients")
}

func checkBlocks(p result.Params) error {
	p = fill(p)
	if _, err := storeOf(p); err != nil {
		return err
	}
	if !slices.Contains(fio.Operations(), p.Operation) {
		return fmt.Errorf("operation %q is unknown: %s", p.Operation, strings.Join(fio.Operations(), ", "))
	}
	if p.Block < leastBlock || p.Block > mostBlock || p.Block%leastBlock != 0 {
		return fmt.Errorf("block %d bytes is out of range: %d to %d bytes, in steps of %d", int64(p.Block), int64(leastBlock), int64(mostBlock), int64(leastBlock))
	}
	if p.Depth < 1 || p.Depth > mostDepth {
		return fmt.Errorf("depth %d is out of range: 1 to %d", p.Depth, mostDepth)
	}
	if p.Clients < 1 || p.Clients > mostClients {
		return fmt.Errorf("clients %d is out of range: 1 to %d", p.Clients, mostClients)
	}
	return nil
}

// demand is what the workload needs with parameters p. Clients of clusters find in known what is known of storage.
func demand(p result.Params, known *disks) workload.Demand {
	p = fill(p)
	s, err := storeOf(p)
	if err != nil {
		return workload.Demand{} // Check says why
	}
	d := workload.Demand{
		Programs: append([]workload.Program{{Name: fio.Program, Package: fio.Program}}, s.programs...),
		Burst:    leastBurst,
		Opaque:   true,
	}
	if s.memory != nil {
		d.Memory = s.memory(p)
	}
	if p.StorageClass != "" {
		d.Volume = volumeFile(p)
	}
	if c := s.cluster; c != nil {
		d.Cluster = &workload.Cluster{
			Key: c.key(p), Pods: c.pods,
			Serve: func(ctx context.Context, p result.Params, at workload.Place) (workload.Server, error) {
				if err := check(p); err != nil {
					return nil, err
				}
				return c.serve(ctx, fill(p), at)
			},
			Dial: func(ctx context.Context, p result.Params, at workload.Place) (workload.Client, error) {
				return dialCluster(ctx, s, p, at, known)
			},
		}
	}
	return d
}

// serve starts a store's server, where it is one alone.
func serve(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (workload.Server, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	p = fill(p)
	s, err := storeOf(p)
	if err != nil {
		return nil, fmt.Errorf("block: %w", err)
	}
	if s.serve == nil {
		return nil, fmt.Errorf("block: store %s has no server that stands alone", s.name)
	}
	return s.serve(ctx, p, listen, cpu)
}

// dial readies a client of a store whose server is one alone.
func dial(ctx context.Context, p result.Params, _, server netip.AddrPort, cpu int) (workload.Client, error) {
	c, err := open(ctx, p, cpu, whom(p, server), func(ctx context.Context, h *daemon.Home, p result.Params) (fio.Target, error) {
		s, err := storeOf(p)
		if err != nil {
			return fio.Target{}, err
		}
		if s.attach == nil {
			return fio.Target{}, fmt.Errorf("store %s has no server that stands alone", s.name)
		}
		return s.attach(ctx, h, p, server)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
