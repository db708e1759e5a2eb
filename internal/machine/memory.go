package machine

import (
	"errors"
	"fmt"

	"github.com/prometheus/procfs"

	"netdelta/unit"
)

// FreeMemory is what programs of this machine can still take without swapping, as the kernel estimates it (MemAvailable), and at most
// what this program's control groups leave it.
func FreeMemory() (unit.Bytes, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("read how much memory is free: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return 0, fmt.Errorf("read how much memory is free: %w", err)
	}
	if info.MemAvailableBytes == nil {
		return 0, errors.New("read how much memory is free: /proc/meminfo has no MemAvailable")
	}
	return min(unit.Bytes(*info.MemAvailableBytes), controlled()), nil
}
