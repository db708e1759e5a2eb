package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/network"
)

// steer spreads the packets that the devices of a namespace receive over all processors, or has each stay where it came in.
// The switch for it is in sysfs alone, which shows the devices of the namespace that it was mounted in: it is mounted
// where no other process sees it, by a thread that ends with it.
func (b *builder) steer(op network.Steer) error {
	s, err := b.in(op.In)
	if err != nil {
		return err
	}
	mask := "0"
	all, err := position(op.To)
	if err != nil {
		return err
	}
	if all {
		cpus, err := procfile.OnlineCPUs()
		if err != nil {
			return err
		}
		if len(cpus) < 2 {
			return fmt.Errorf("there is one processor, and so nothing to spread packets over: %w", unix.EOPNOTSUPP)
		}
		mask = cpuMask(cpus)
	}
	return s.ns.DoOnce(func() error {
		if err := ownSysfs(); err != nil {
			return err
		}
		queues, err := filepath.Glob("/sys/class/net/*/queues/rx-*")
		if err != nil {
			return err
		}
		if len(queues) == 0 {
			return errors.New("no device has a queue of received packets")
		}
		for _, q := range queues {
			if err := os.WriteFile(q+"/rps_cpus", []byte(mask), 0); err != nil {
				return fmt.Errorf("set the processors of %s: %w", strings.TrimPrefix(q, "/sys/class/net/"), err)
			}
		}
		return nil
	})
}

// ownSysfs mounts the sysfs of the calling thread's network namespace over /sys, for this thread alone.
func ownSysfs() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to this thread: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	return nil
}

// cpuMask writes a set of processors as the kernel reads it: words of 32 bits in hexadecimal digits, the last word first.
func cpuMask(cpus []int) string {
	var words []uint32
	for _, c := range cpus {
		for len(words) <= c/32 {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	parts := make([]string, len(words))
	for i, w := range words {
		parts[len(words)-1-i] = fmt.Sprintf("%08x", w)
	}
	return strings.Join(parts, ",")
}
