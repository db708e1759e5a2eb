package block

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/block/ceph"
	"netdelta/workload/tool/fio"
)

// rbd is the store of an image in a Ceph cluster.
func rbd() store {
	return store{
		name:     "ceph",
		programs: ceph.Programs(),
		memory:   func(p load) unit.Bytes { return ceph.Memory(p.OSDs) },
		cluster: &cluster{
			shape: func(p load) (key string, pods int) { return ceph.Key(p.OSDs), p.OSDs },
			serve: func(ctx context.Context, _ load, at workload.Member) (engine.Server, error) {
				return ceph.Serve(ctx, at)
			},
			attach: ceph.Attach,
			whole:  ceph.Whole,
		},
	}
}

// wholeWithin is how long a store may take to say that all that it keeps is there.
const wholeWithin = 10 * time.Second

// dialCluster readies a client of a store that is a cluster.
func dialCluster(ctx context.Context, s store, p result.Params, at workload.Member, known *disks) (engine.Client, error) {
	c, err := open(ctx, p, at.CPU, s.name, func(ctx context.Context, h *daemon.Sandbox, _ load) (fio.Target, error) {
		return s.cluster.attach(ctx, h, at)
	})
	if err != nil {
		return nil, err
	}
	disk, err := known.measure(ctx, c.params, at.CPU)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.Name, err), c.Close())
	}
	c.Collected = func(t *engine.Totals) error {
		t.Disk = &disk
		if s.cluster.whole == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), wholeWithin)
		defer cancel()
		return s.cluster.whole(ctx, c.Home)
	}
	return c, nil
}

// disks are what storage does without a network, as far as clients of clusters have measured it: a cluster serves all
// parameters, so that its servers can't know which to measure. All of a cluster's storage is memory, as is what is measured in
// its stead.
type disks struct {
	mu    sync.Mutex
	known map[string]result.Disk // by what was asked of it
}

// measure measures storage with the parameters of a client, once.
func (d *disks) measure(ctx context.Context, p load, cpu int) (disk result.Disk, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.Clients *= max(p.ClientPods, 1) // of all that use it
	what := fmt.Sprint(p.Operation, p.Reads, p.Sync, p.Block, p.Depth, p.Clients)
	if disk, found := d.known[what]; found {
		return disk, nil
	}
	size := imageSize(p)
	home, err := daemon.Open(size + unit.MiB)
	if err != nil {
		return disk, fmt.Errorf("measure storage without a network: %w", err)
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	if err := fillImage(ctx, home, size); err != nil {
		return disk, err
	}
	if disk, err = measureDisk(ctx, home, home.Path(export), p, cpu); err == nil {
		d.known[what] = disk
	}
	return disk, err
}
