package agent

import (
	"fmt"
	"os"
	"runtime/debug"

	"netdelta/workload"
)

// memory is where an agent's garbage collector steps in: far above what bursts need, so that it never does within one.
const memory = 256 << 20

// Become makes this process an agent on its standard input and output, and ends it when its input ends: also while a burst
// is under way, which nobody waits for any more.
func Become(workloads []workload.Workload) {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memory)
	if err := Serve(os.Stdin, os.Stdout, workloads); err != nil {
		fmt.Fprintln(os.Stderr, "netdelta agent:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Asked says whether this process was started as an agent. Programs other than netdelta that start agents of their own
// call it first thing.
func Asked() bool { return os.Args[len(os.Args)-1] == Subcommand }
