package block

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/clock"
	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/block/ceph"
	"netdelta/workload/tool/fio"
)

// clientRoom is what a client's home may hold: configuration.
const clientRoom = 4 * unit.MiB

// client runs fio for each burst.
type client struct {
	workload.ProgramClient
	target fio.Target
	counts bool // time is the processors' counter's
	params load
	cpu    int
}

// attacher readies a home and says how fio reaches a store from it.
type attacher func(ctx context.Context, h *daemon.Sandbox, p load) (fio.Target, error)

// open readies a client.
func open(ctx context.Context, p result.Params, cpu int, server string, attach attacher) (_ *client, err error) {
	if err := check(p); err != nil {
		return nil, err
	}
	c := &client{params: loadOf(p), cpu: cpu, counts: clock.KernelTrustsCounter()}
	c.Name, c.Run = "block: a client of "+server, c.burst
	if c.Home, err = daemon.Open(clientRoom); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	if c.target, err = attach(ctx, c.Home, c.params); err == nil {
		err = able(ctx, c.Home, c.target.Engine, cpu)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.Name, err), c.Close())
	}
	return c, nil
}

// able finds out whether the fio that is installed can do what is asked of it.
func able(ctx context.Context, home *daemon.Sandbox, engine string, cpu int) error {
	said, err := home.Run(ctx, daemon.Spec{Path: fio.Program, Args: []string{"--version"}, CPUs: daemon.Pin(cpu)})
	if err != nil {
		return fmt.Errorf("ask fio for its version: %w", err)
	}
	if err := fio.CheckVersion(string(said)); err != nil {
		return err
	}
	// fio knows an engine by finding its library, which may be in a package of its own.
	if _, err := home.Run(ctx, daemon.Spec{Path: fio.Program, Args: []string{"--enghelp=" + engine}}); err != nil {
		return fmt.Errorf("fio has no engine %s: install a fio that was built with it: %w", engine, err)
	}
	return nil
}

// longest bounds a burst of operations that has no duration.
const longest = 30 * time.Second

// burst has fio do a burst.
func (c *client) burst(ctx context.Context, spec engine.BurstSpec) (engine.Burst, engine.More, error) {
	length := cmp.Or(spec.Duration, longest)
	clients := int64(c.params.Clients * c.params.servers())
	job := fio.Job{
		Target: c.target, Operation: c.params.Operation, Reads: c.params.Reads, Sync: c.params.Sync,
		Block: c.params.Block, Depth: c.params.Depth, Clients: c.params.Clients,
		Counts: c.counts, Warmup: spec.Warmup, Duration: max(length, time.Millisecond), Operations: (spec.Transactions + clients - 1) / clients,
	}
	if job.Operations > 0 {
		job.Warmup = 0 // fio would count its operations among the others
	}
	out, err := c.Home.Run(ctx, daemon.Spec{Path: fio.Program, Args: fio.Args(job), Env: c.target.Env, CPUs: daemon.Pin(c.cpu)})
	if err != nil {
		return engine.Burst{}, engine.More{}, err
	}
	b, d, err := burst(out)
	// fio says nothing of its warm-up: for its length as much is taken to have been done in it as was measured afterwards.
	all := 1 + float64(job.Warmup)/float64(max(b.Duration, 1))
	b.CPU, b.Work, b.Moved = time.Duration(float64(b.CPU)*all), int64(float64(b.Work)*all), int64(float64(b.Moved)*all)
	return b, engine.More{Latencies: d.Latency.Record}, err
}

// burst reads what fio reports of a burst.
func burst(out []byte) (engine.Burst, fio.Direction, error) {
	report, err := fio.Parse(out)
	if err != nil {
		return engine.Burst{}, fio.Direction{}, err
	}
	r := report.Jobs[0]
	d := r.Done()
	if r.Error != 0 || d.Operations == 0 || d.Duration == 0 {
		return engine.Burst{}, d, fmt.Errorf("fio did %d operations in %v, %d failed, the first with error %d", d.Operations, d.Duration, r.Errors, r.Error)
	}
	l := d.Latency
	b := engine.Burst{
		Start:    report.Written.Add(-d.Duration),
		Duration: d.Duration, Transactions: d.Operations, Bytes: d.Bytes, Errors: r.Errors,
		Min: l.Min, P50: l.Quantile(0.5), P90: l.Quantile(0.9), P99: l.Quantile(0.99), Mean: l.Mean, Max: l.Max,
		Throughput: float64(d.Bytes) * 8 / d.Duration.Seconds(),
		// fio starts to count anew when its warm-up ends.
		CPU: r.User + r.System, Work: d.Operations, Moved: d.Bytes,
	}
	return b, d, nil
}

// diskSpan is how long the storage is measured without a network, and diskWarmup what goes before.
const (
	diskSpan   = 300 * time.Millisecond
	diskWarmup = 50 * time.Millisecond
)

// measureDisk measures what keeps the blocks, without a network: a file of the home, with the operation and the block of p. As
// many threads read or write it as operations are under way over the network, and no more than there are processors: memory
// has no queue in which the others could wait.
func measureDisk(ctx context.Context, home *daemon.Sandbox, file string, p load, cpu int) (disk result.Disk, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("measure %s without a network: %w", file, err)
		}
	}()
	threads := p.Depth * p.Clients
	if cpu >= 0 {
		threads = 1
	}
	out, err := home.Run(ctx, daemon.Spec{Path: fio.Program, CPUs: daemon.Pin(cpu), Args: fio.Args(fio.Job{
		Target:    fio.Target{Engine: "psync", Options: []string{"filename=" + file}},
		Operation: p.Operation, Reads: p.Reads, Sync: p.Sync, Block: p.Block, Depth: 1, Clients: min(threads, runtime.NumCPU()),
		Counts: clock.KernelTrustsCounter(), Warmup: diskWarmup, Duration: diskSpan,
	})})
	if err != nil {
		return disk, err
	}
	b, d, err := burst(out)
	return result.Disk{
		Rate: float64(b.Transactions) / max(b.Duration, 1).Seconds(), Throughput: d.Throughput,
		P50: time.Duration(b.P50), P99: time.Duration(b.P99),
	}, err
}

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
	p.Clients *= max(p.ClientPods, 1) * p.servers() // of all that use it
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

// Bounds of a volume's file. It has many more blocks than one burst visits.
const (
	leastFile = 16 * unit.MiB
	usualFile = 256 * unit.MiB
	mostFile  = 16 * unit.GiB
	// leastBlocks is how many blocks a file has at least.
	leastBlocks = 16
)

// blocksFile is the file of a volume that blocks lie in.
const blocksFile = "netdelta.blocks"

// volume is the store of a volume of a cluster: the maker of the pod has mounted it there.
func volume(class string) store {
	return store{
		name: "storage class " + class,
		attach: func(ctx context.Context, p load, _ netip.AddrPort) (fio.Target, error) {
			return attachVolume(ctx, testbed.VolumeFolder, p)
		},
	}
}

// storeName names what a client reads and writes.
func storeName(p result.Params, server netip.AddrPort) string {
	if p.StorageClass != "" {
		return "a volume of storage class " + p.StorageClass
	}
	return server.String()
}

// checkVolume checks the parameters that go with a storage class.
func checkVolume(p load) error {
	if p.StorageClass == "" {
		if p.IO == buffered {
			return fmt.Errorf("io %s is of volumes of a storage class; stores of netdelta's own are read and written past the node's memory", buffered)
		}
		return nil
	}
	least := max(leastFile, leastBlocks*p.Block)
	switch {
	case p.Store != stores()[0].name: // the default
		return fmt.Errorf("store %s is one of netdelta's own; leave it out with a storage class", p.Store)
	case p.Servers > 0:
		return fmt.Errorf("servers %d are of a store of netdelta's own; leave them out with a storage class", p.Servers)
	case p.File != 0 && (p.File < least || p.File > mostFile):
		return fmt.Errorf("file %d bytes is out of range: %d to %d bytes", int64(p.File), int64(least), int64(mostFile))
	}
	return nil
}

// volumeFile is how large the file is: in whole parts, as direct I/O wants it.
func volumeFile(p load) unit.Bytes {
	size := p.File
	if size == 0 {
		size = max(usualFile, leastBlocks*p.Block)
	}
	return (size + unit.MiB - 1) / unit.MiB * unit.MiB
}

// attachVolume fills the file of a volume, past the node's memory, and says how fio reaches it.
func attachVolume(ctx context.Context, folder string, p load) (fio.Target, error) {
	file, size := filepath.Join(folder, blocksFile), volumeFile(p)
	if err := fillVolume(ctx, file, size); err != nil {
		return fio.Target{}, err
	}
	past := "1"
	if p.IO == buffered {
		past = "0"
	}
	return fio.Target{Engine: "libaio", Options: []string{
		"filename=" + file, fmt.Sprintf("size=%d", int64(size)),
		// Blocks that an earlier burst has brought into some memory are not what is measured: fio has the node forget the file as it begins.
		"direct=" + past, "randrepeat=0",
	}}, nil
}

// fillVolume makes a file of a volume as long as asked for, of blocks that all differ. What is there already stays.
func fillVolume(ctx context.Context, file string, size unit.Bytes) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		return unwritable(file, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("look how long %s is: %w", file, err)
	}
	if at >= int64(size) {
		return nil
	}
	part, err := unix.Mmap(-1, 0, fillPart, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS) // aligned, as direct I/O wants it
	if err != nil {
		return fmt.Errorf("memory to fill %s from: %w", file, err)
	}
	defer func() { _ = unix.Munmap(part) }() // nothing refers to it any more
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // it never fails; storage that finds out what is there twice must not find this
	noise := rand.NewChaCha8(seed)
	for ; at < int64(size); at += fillPart {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("fill %s: %v of %v are written: %w", file, unit.Bytes(at), size, err)
		}
		_, _ = noise.Read(part) // it never fails
		if _, err := f.WriteAt(part[:min(fillPart, int64(size)-at)], at); err != nil {
			return unwritable(file, err)
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("fill %s: %w", file, err)
	}
	return nil
}

// unwritable says what to do about a volume's file that can't be written.
func unwritable(file string, err error) error {
	folder := filepath.Dir(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: there is no volume at %s; it takes a pod that has one", err, folder)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: the volume's file system takes no direct I/O, and without it the memory of the node would be measured; name a class with another file system", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: the volume is not given to the pod's group (fsGroup), without which user %d can't write to it; have its driver do that (fsGroupPolicy), or name another class", err, os.Geteuid())
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: the volume is smaller than was asked for; ask for a smaller file", err)
	}
	return err
}
