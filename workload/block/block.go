// Package block is the workload block: blocks of a store across the network, read and written by fio.
package block

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/block/ceph"
	"netdelta/workload/tool/fio"
)

// Bounds of the parameters.
const (
	leastBlock  = 512
	mostBlock   = 16 * unit.MiB
	mostDepth   = 256
	mostClients = 16
	leastShare  = 0.01 // fio takes whole percents
	evenShare   = 0.5
	mostSync    = 1024
	mostOSDs    = 16
	mostPods    = 16
	mostServers = 16
)

// leastBurst is the shortest burst that says something: fio counts its length in whole milliseconds, and takes a third of a
// second to begin.
const leastBurst = 500 * time.Millisecond

// leastTogether is the shortest burst of clients in several pods, several times as long as the time between their starts.
const leastTogether = 2 * time.Second

// Workload is block.
func Workload() workload.Workload {
	known := &disks{known: map[string]result.Disk{}}
	return workload.Workload{
		Name:       "block",
		Protocol:   network.TCP,
		Summary:    "blocks of a store across the network, read and written by fio",
		UsedBy:     "volumes of pods: databases, virtual disks, anything on Ceph RBD or NBD",
		Headline:   "rate",
		Metrics:    append([]workload.Metric{{Name: "rate", Unit: "1/s", Better: "higher"}}, workload.LatencyMetrics()...),
		Defaults:   result.Params{CPU: "same", Clients: 1, Own: result.Own{}.Or(parameters())},
		Parameters: parameters(),
		Check:      check,
		// The libraries of the stores choose their ports themselves.
		SourcePorts: func(result.Params) int { return 1 },
		Demand:      func(p result.Params) workload.Demand { return demand(p, known) },
		Serve:       serve,
		Dial:        dial,
	}
}

// parameters are those that the workload declares.
func parameters() []result.Parameter {
	return result.Declare(
		result.Parameter{Key: "store", Kind: result.KindWord, Words: "nbd|ceph", Default: "nbd", Says: "What keeps the blocks.",
			Excludes: result.Exclusion{
				Key: "storage_class", Why: "the blocks lie in a volume of that class", Fix: "leave store out, or storage_class, to measure a store of netdelta's own",
			}},
		result.Parameter{Key: "operation", Kind: result.KindWord, Words: strings.Join(fio.Operations(), "|"), Default: "randread", Says: "What is done with blocks."},
		result.Parameter{Key: "block", Kind: result.KindSize, Low: leastBlock, High: float64(mostBlock), Default: 4 * unit.KiB, ID: "%", Says: "Size of one operation on blocks."},
		result.Parameter{Key: "depth", Kind: result.KindCount, Low: 1, High: mostDepth, Default: 1, Usual: "1", Says: "Operations that each client has under way at once."},
		result.Parameter{Key: "reads", Kind: result.KindShare, Low: leastShare, High: 1 - leastShare, ID: "reads=%", Label: "% reads",
			Needs: result.Need{Key: "operation", Levels: "randrw|rw", Fix: "name one that mixes reads and writes: operation: [randrw]"}, Says: "Share of reads among mixed operations (randrw, rw), 0.01 to 0.99: 0.7; half of them where it is left out."},
		result.Parameter{Key: "osds", Kind: result.KindCount, Low: 1, High: mostOSDs, ID: "osds=%", Label: "% OSDs",
			Needs: result.Need{Key: "store", Levels: "ceph", Fix: "name the store that has them: store: ceph"}, Says: "OSDs of the store, on a node each; 3 where it is left out. Each block is kept on three of them, or on all of fewer."},
		result.Parameter{Key: "client_pods", Kind: result.KindCount, Low: 1, High: mostPods, Usual: "1", ID: "client_pods=%", Label: "% client pods",
			Says: "Pods on a node each that use the store at the same time, with as many clients each as there are; of a storage class, each has a volume of its own. 1 where it is left out."},
		result.Parameter{Key: "servers", Kind: result.KindCount, Low: 1, High: mostServers, ID: "servers=%", Label: "% servers",
			Needs: result.Need{Key: "store", Levels: "nbd|", Fix: "name the store that has them: store: nbd"}, Says: "Servers of the store, on a node each, whose blocks each client reads and writes at the same time, with as many connections to each; 1 where it is left out."},
		result.Parameter{Key: "fsync", Kind: result.KindCount, Low: 1, High: mostSync, ID: "fsync=%", Label: "fsync %",
			Needs: result.Need{Key: "operation", Levels: "randwrite|randrw|write|rw", Fix: "name one that writes: operation: [randwrite]"}, Says: "After how many writes a client has the store make lasting what it wrote; never where it is left out."},
		result.Parameter{Key: "io", Kind: result.KindWord, Words: "direct|" + buffered, Unset: "direct", Dropped: true, Usual: "direct", ID: "io=%", Label: "% I/O",
			Says: "Of volumes of a storage class: whether blocks go past the memory of the node (direct) or through it (buffered)."},
	)
}

// load is what parameters ask for, with the defaults filled in.
type load struct {
	result.Params
	Store, Operation string
	Block            unit.Bytes
	Depth            int
	Reads            float64 // share of reads among mixed operations
	Sync             int     // writes between two syncs, 0 for none
	OSDs             int     // of a store of Ceph
	ClientPods       int     // 0 is one
	Servers          int     // of a store of NBD, on a node each; 0 is one that stands alone
	IO               string  // how a volume's blocks are read and written
}

// buffered is the level of io at which the blocks of a volume are read and written through the node's memory.
const buffered = "buffered"

func loadOf(p result.Params) load {
	own := p.Own.Or(parameters())
	p.Clients = max(p.Clients, 1)
	reads := own.Share("reads")
	if fio.Mixed(own.Word("operation")) {
		reads = cmp.Or(reads, evenShare)
	}
	return load{p, own.Word("store"), own.Word("operation"), own.Size("block"), own.Count("depth"), reads, own.Count("fsync"), cmp.Or(own.Count("osds"), ceph.OSDs), own.Count("client_pods"), own.Count("servers"), own.Word("io")}
}

// clustered says that the store's servers are started once for all cells, on nodes of their own.
func (p load) clustered() bool { return p.ClientPods > 0 || p.Servers > 0 }

func (p load) servers() int { return max(p.Servers, 1) }

// check returns an error that names the first parameter out of range, and the range.
func check(p result.Params) error {
	used := []string{"clients"}
	if p.StorageClass != "" {
		used = append(used, "storage_class", "file")
	}
	if err := (engine.Limits{Workload: "block", Own: parameters(), Used: used}).Check(p); err != nil {
		return err
	}
	l := loadOf(p)
	if err := cmp.Or(checkBlocks(l), checkVolume(l)); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	return nil
}

func checkBlocks(p load) error {
	if _, err := storeOf(p); err != nil {
		return err
	}
	if p.Block%leastBlock != 0 {
		return fmt.Errorf("block %v is no whole number of %d bytes", p.Block, leastBlock)
	}
	if p.Reads != 0 && !fio.Mixed(p.Operation) {
		return fmt.Errorf("reads %v is a share of mixed operations, and %s is none; take randrw or rw, or leave reads out", p.Reads, p.Operation)
	}
	if p.Sync != 0 && !fio.Writes(p.Operation) {
		return fmt.Errorf("fsync %d is after how many writes, and %s writes nothing; take another operation, or leave fsync out", p.Sync, p.Operation)
	}
	if p.Clients < 1 || p.Clients > mostClients {
		return fmt.Errorf("clients %d is out of range: 1 to %d", p.Clients, mostClients)
	}
	return nil
}

// demand is what the workload needs with parameters p. Clients of clusters find in known what is known of storage.
func demand(params result.Params, known *disks) workload.Demand {
	p := loadOf(params)
	s, err := storeOf(p)
	if err != nil {
		return workload.Demand{} // Check says why
	}
	d := workload.Demand{
		Programs: append([]workload.Program{{Name: fio.Program, Package: fio.Program}}, s.programs...),
		Burst:    leastBurst,
		Opaque:   true,
		Clients:  p.ClientPods,
	}
	if p.ClientPods > 1 {
		d.Burst = leastTogether
	}
	if s.memory != nil {
		d.Memory = s.memory(p)
	}
	if p.StorageClass != "" {
		d.Volume = volumeFile(p)
	}
	// A server that can stand alone does so where nothing is said of several clients, or of several servers.
	if c := s.cluster; c != nil && (s.serve == nil || p.clustered()) {
		key, pods := c.shape(p)
		d.Cluster = &workload.Cluster{
			Key: key, Pods: pods, Ports: c.ports,
			Serve: func(ctx context.Context, p result.Params, at workload.Member) (engine.Server, error) {
				if err := check(p); err != nil {
					return nil, err
				}
				return c.serve(ctx, loadOf(p), at)
			},
			Dial: func(ctx context.Context, p result.Params, at workload.Member) (engine.Client, error) {
				return dialCluster(ctx, s, p, at, known)
			},
		}
	}
	return d
}

// serve starts a store's server, where it is one alone.
func serve(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	l := loadOf(p)
	s, err := storeOf(l)
	if err != nil {
		return nil, fmt.Errorf("block: %w", err)
	}
	if s.serve == nil {
		return nil, fmt.Errorf("block: store %s has no server that stands alone", s.name)
	}
	return s.serve(ctx, l, listen, cpu)
}

// dial readies a client of a store whose server is one alone.
func dial(ctx context.Context, p result.Params, _, server netip.AddrPort, cpu int) (engine.Client, error) {
	return open(ctx, p, cpu, storeName(p, server), func(ctx context.Context, _ *daemon.Sandbox, p load) (fio.Target, error) {
		s, err := storeOf(p)
		if err != nil {
			return fio.Target{}, err
		}
		if s.attach == nil {
			return fio.Target{}, fmt.Errorf("store %s has no server that stands alone", s.name)
		}
		return s.attach(ctx, p, server)
	})
}

// store is what keeps the blocks that fio reads and writes. Serve and attach are set, or cluster, or all of them where clients in several pods
// are served in another way than one; or attach alone where nothing of netdelta's serves.
type store struct {
	name     string // of the parameter store
	programs []workload.Program
	memory   func(p load) unit.Bytes // that its servers take, all together; nil without servers
	// serve starts a server alone, which listens at an address.
	serve func(ctx context.Context, p load, listen netip.AddrPort, cpu int) (engine.Server, error)
	// attach finds out that the store answers, and says how fio reaches it.
	attach  func(ctx context.Context, p load, server netip.AddrPort) (fio.Target, error)
	cluster *cluster
}

// cluster is a store of daemons in several pods: see workload.Cluster.
type cluster struct {
	// shape names the one that parameters ask for, and says in how many pods it is.
	shape func(p load) (key string, pods int)
	ports []uint16 // see workload.Cluster
	serve func(ctx context.Context, p load, at workload.Member) (engine.Server, error)
	// attach readies the client's home (files of it are written with Home.Write), finds out that the store answers, and says
	// how fio reaches it from there.
	attach func(ctx context.Context, h *daemon.Sandbox, at workload.Member) (fio.Target, error)
	// whole returns an error unless all of what it keeps is there; nil where that is not looked at.
	whole func(ctx context.Context, h *daemon.Sandbox) error
}

// stores are those that there are, the first by default.
func stores() []store { return []store{nbd(), rbd()} }

// storeOf is the store that p names.
func storeOf(p load) (store, error) {
	if p.StorageClass != "" {
		return volume(p.StorageClass), nil
	}
	var names []string
	for _, s := range stores() {
		if s.name == p.Store {
			return s, nil
		}
		names = append(names, s.name)
	}
	return store{}, fmt.Errorf("store %q is unknown: %s", p.Store, strings.Join(names, ", "))
}
