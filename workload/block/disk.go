package block

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/workload/tool/fio"
)

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
		Warmup: diskWarmup, Duration: diskSpan,
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
