// Package drops counts the packets that the kernel drops, by the reason that it gives (enum skb_drop_reason), by device and by network
// namespace. The kernel counts by itself, in an eBPF program at the tracepoint kfree_skb: while nothing is dropped it costs nothing.
package drops

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"netdelta/testbed"
)

// Place is where and why packets were dropped.
type Place struct {
	// Reason is the kernel's own name without its prefix, such as "NETFILTER_DROP" or "IP_RPFILTER".
	Reason string
	// Device is the number of the device that the packet was at, 0 for none; Space is the inode of the network namespace, 0 where the
	// packet had neither a device nor a socket.
	Device, Space uint32
}

// Counts are how many packets were dropped at each place since the counter was opened.
type Counts map[Place]uint64

// Since is what was dropped after an earlier reading of the same counter.
func (c Counts) Since(before Counts) Counts {
	since := Counts{}
	for place, n := range c {
		if n > before[place] {
			since[place] = n - before[place]
		}
	}
	return since
}

// isDrop says whether a reason is one: for others the kernel frees packets that have done their work.
func isDrop(reason string) bool {
	return reason != "" && reason != "NOT_DROPPED_YET" && reason != "CONSUMED"
}

// Counter counts drops of the whole machine from Open to Close. All that it holds in the kernel is gone with it, also when the program
// is killed. It is safe for concurrent use.
type Counter struct {
	objects countedObjects
	link    link.Link
	reasons map[uint32]string
}

// Open begins to count. Its error is a *testbed.PermissionError where this user may not, and a *testbed.UnsupportedError where the
// kernel gives no reasons (they are there from Linux 5.17 on).
func Open() (*Counter, error) {
	// Kernels before 5.11 charge maps to this limit; younger ones ignore it.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, refused(err)
	}
	c := &Counter{}
	var err error
	if c.reasons, err = reasonsOfKernel(); err != nil {
		return nil, &testbed.UnsupportedError{Feature: "reasons of dropped packets", Need: fmt.Sprintf("a kernel that gives them (%v)", err), Fix: "use Linux 5.17 or later, with BTF"}
	}
	if err := loadCountedObjects(&c.objects, nil); err != nil {
		return nil, refused(err)
	}
	if c.link, err = link.AttachTracing(link.TracingOptions{Program: c.objects.OnDrop}); err != nil {
		return nil, errors.Join(refused(err), c.objects.Close())
	}
	return c, nil
}

// refused tells the lack of a right from the lack of a feature.
func refused(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &testbed.PermissionError{Doing: "count dropped packets by reason", Need: "the capabilities CAP_BPF and CAP_PERFMON", Fix: "run it as root", Err: err}
	}
	return fmt.Errorf("count dropped packets by reason: %w", err)
}

// Close ends the counting.
func (c *Counter) Close() error { return errors.Join(c.link.Close(), c.objects.Close()) }

// Read is what was dropped so far, and how many drops there was no room to count.
func (c *Counter) Read() (counts Counts, unplaced uint64, err error) {
	counts = Counts{}
	var at countedWhere
	var n uint64
	all := c.objects.Dropped.Iterate()
	for all.Next(&at, &n) {
		if reason := c.reasons[at.Reason]; isDrop(reason) {
			counts[Place{Reason: reason, Device: at.Device, Space: at.Space}] += n
		}
	}
	if err := all.Err(); err != nil {
		return nil, 0, fmt.Errorf("read the counts of dropped packets: %w", err)
	}
	if err := c.objects.Unplaced.Lookup(uint32(0), &unplaced); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, 0, fmt.Errorf("read how many drops there was no room for: %w", err)
	}
	return counts, unplaced, nil
}

// reasonsOfKernel are the names of this kernel's reasons: their numbers differ from one version to the next.
func reasonsOfKernel() (map[uint32]string, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	var enum *btf.Enum
	if err := kernel.TypeByName("skb_drop_reason", &enum); err != nil {
		return nil, fmt.Errorf("find enum skb_drop_reason: %w", err)
	}
	names := map[uint32]string{}
	for _, v := range enum.Values {
		name := strings.TrimPrefix(strings.TrimPrefix(v.Name, "SKB_DROP_REASON_"), "SKB_")
		names[uint32(v.Value)] = name
	}
	return names, nil
}

//go:generate go tool -modfile=../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -type where counted bpf/drops.bpf.c -- -O2 -Wall -Wextra -Wno-unused-parameter -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
