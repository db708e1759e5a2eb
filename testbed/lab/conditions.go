package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/internal/procfile"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/nsmonitor"
)

// Handles of the queueing disciplines of a device: what limits its rate is the root, or the child of what impairs it.
const (
	shapeHandle  = 1
	impairHandle = 2
)

// The token bucket holds what passes in bucketTime, at least bucketLeast, which is one segment as large as offloads make
// it; what has to wait may wait queueTime.
const (
	bucketTime  = 0.001 // seconds
	bucketLeast = 68 << 10
	queueTime   = 0.020 // seconds
)

// shape limits what a device sends, by a token bucket.
func (b *builder) shape(op network.Shape) error {
	s, i, err := b.device(op.Device)
	if err != nil {
		return err
	}
	rate := float64(op.Rate) / 8
	bucket := max(rate*bucketTime, bucketLeast)
	queue := bucket + rate*queueTime
	// The bucket's size is handed over as the time that it takes to send it, in the kernel's ticks.
	ticks := bucket / rate * 1e6 * netlink.TickInUsec()
	if ticks > math.MaxUint32 || queue > math.MaxUint32 {
		return fmt.Errorf("a rate of %d bit/s is out of the range of the tbf queueing discipline", int64(op.Rate))
	}
	parent := uint32(netlink.HANDLE_ROOT)
	if op.Impaired {
		parent = netlink.MakeHandle(impairHandle, 1)
	}
	return s.nl.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: i, Handle: netlink.MakeHandle(shapeHandle, 0), Parent: parent},
		Rate:       uint64(rate), Limit: uint32(queue), Buffer: uint32(ticks),
	})
}

// heldUp is how many packets may be under way on an impaired link: more than all senders together have in flight, so that no
// packet is lost but those that are meant to be.
const heldUp = 1 << 20

// impair delays and loses what a device sends.
func (b *builder) impair(op network.Impair) error {
	s, i, err := b.device(op.Device)
	if err != nil {
		return err
	}
	ticks := float64(op.Delay) / float64(time.Microsecond) * netlink.TickInUsec()
	if ticks > math.MaxUint32 {
		return fmt.Errorf("a delay of %s is out of the range of the netem queueing discipline", op.Delay)
	}
	return s.nl.QdiscAdd(&netlink.Netem{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: i, Handle: netlink.MakeHandle(impairHandle, 0), Parent: netlink.HANDLE_ROOT},
		Latency:    uint32(ticks), Limit: heldUp, Loss: uint32(math.Round(op.Loss * math.MaxUint32)),
	})
}

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

// features switches offloads of all devices of a namespace. What a device has fixed is left and noted, unless it is fixed on
// all of them: then the condition can't be met here.
func (b *builder) features(op network.Features) error {
	s, err := b.in(op.In)
	if err != nil {
		return err
	}
	links, err := s.links()
	if err != nil {
		return err
	}
	return s.ns.Do(func() error {
		e, err := nsmonitor.OpenEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		for _, f := range op.Each() {
			var fixed []string // kinds of devices
			for _, l := range links {
				met, err := switchFeature(e, l.Attrs().Name, f)
				if err != nil {
					return fmt.Errorf("switch %s of %s %s: %w", f.Name, l.Attrs().Name, f.To, err)
				}
				if !met {
					fixed = append(fixed, l.Type())
				}
			}
			if len(fixed) == len(links) {
				return fmt.Errorf("no device has a %s that can be switched %s: %w", f.Name, f.To, unix.EOPNOTSUPP)
			}
			b.noteFixed(f, fixed)
		}
		return nil
	})
}

// offload is work that a device may do or leave to others, and the commands of ethtool by which it is asked and switched. Where
// the answer holds several, bit is the one that is meant.
type offload struct {
	name          string
	get, set, bit uint32
}

// flagLRO is ETH_FLAG_LRO of linux/ethtool.h.
const flagLRO = 1 << 15

func offloads() []offload {
	return []offload{
		{"rx-checksum", unix.ETHTOOL_GRXCSUM, unix.ETHTOOL_SRXCSUM, 1},
		{"tx-checksum", unix.ETHTOOL_GTXCSUM, unix.ETHTOOL_STXCSUM, 1},
		{"scatter-gather", unix.ETHTOOL_GSG, unix.ETHTOOL_SSG, 1},
		{"tso", unix.ETHTOOL_GTSO, unix.ETHTOOL_STSO, 1},
		{"gso", unix.ETHTOOL_GGSO, unix.ETHTOOL_SGSO, 1},
		{"gro", unix.ETHTOOL_GGRO, unix.ETHTOOL_SGRO, 1},
		{"lro", unix.ETHTOOL_GFLAGS, unix.ETHTOOL_SFLAGS, flagLRO},
	}
}

// switchFeature switches one offload of a device of the calling thread's namespace, and tells whether it is as it should be.
func switchFeature(e nsmonitor.Ethtool, device string, f network.Feature) (met bool, err error) {
	known := offloads()
	i := slices.IndexFunc(known, func(o offload) bool { return o.name == f.Name })
	if i < 0 {
		return false, fmt.Errorf("there is no offload %q", f.Name)
	}
	o := known[i]
	now, err := e.Value(device, o.get, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		now, err = 0, nil // it has none
	}
	if err != nil {
		return false, err
	}
	wanted := now &^ o.bit
	on, err := position(f.To)
	if err != nil {
		return false, err
	}
	if on {
		wanted |= o.bit
	}
	if now == wanted {
		return true, nil
	}
	// A device that has the feature fixed says so, or says nothing and leaves it.
	if _, err := e.Value(device, o.set, wanted); err != nil {
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
			return false, nil
		}
		return false, err
	}
	now, err = e.Value(device, o.get, 0)
	return now == wanted, err
}

// position tells whether a switch is on, and is an error for what is neither on nor off.
func position(s result.Switch) (on bool, err error) {
	if s != result.On && s != result.Off {
		return false, fmt.Errorf("a switch to %q: need %s or %s", s, result.On, result.Off)
	}
	return s == result.On, nil
}

// noteFixed notes kinds of devices that don't have an offload as it should be.
func (b *builder) noteFixed(f network.Feature, kinds []string) {
	if len(kinds) == 0 {
		return
	}
	slices.Sort(kinds)
	b.note(fmt.Sprintf("offload.%s=%s: devices of these kinds have it fixed otherwise and keep it: %s",
		f.Name, f.To, strings.Join(slices.Compact(kinds), ", ")))
}

// note keeps a sentence on what could not be had as the conditions ask, once.
func (b *builder) note(sentence string) {
	b.notes = gather.Once(b.notes, sentence)
}

// Notes is testbed.Instruments.Notes.
func (l *Testbed) Notes() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.notes)
}

// Offloads asks which offloads a device of the calling thread's namespace has, and which of them are on.
func Offloads(device string) (map[string]bool, error) {
	e, err := nsmonitor.OpenEthtool()
	if err != nil {
		return nil, err
	}
	defer e.Close()
	found := map[string]bool{}
	for _, o := range offloads() {
		value, err := e.Value(device, o.get, 0)
		switch {
		case err == nil && o.name == "lro":
			found[o.name] = value&o.bit != 0
		case err == nil:
			found[o.name] = value != 0
		case !errors.Is(err, unix.EOPNOTSUPP):
			return nil, fmt.Errorf("ask for %s: %w", o.name, err)
		}
	}
	return found, nil
}
