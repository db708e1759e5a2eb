package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
)

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
		fd, done, err := ethtoolSocket()
		if err != nil {
			return err
		}
		defer done()
		for _, f := range op.Each() {
			var fixed []string // kinds of devices
			for _, l := range links {
				met, err := switchFeature(fd, l.Attrs().Name, f)
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

// switchFeature switches one offload of a device of the calling thread's namespace, and tells whether it is as it should be.
func switchFeature(fd int, device string, f network.Feature) (met bool, err error) {
	get, set := map[string]uint32{"tso": unix.ETHTOOL_GTSO, "gso": unix.ETHTOOL_GGSO, "gro": unix.ETHTOOL_GGRO, "lro": unix.ETHTOOL_GFLAGS}[f.Name],
		map[string]uint32{"tso": unix.ETHTOOL_STSO, "gso": unix.ETHTOOL_SGSO, "gro": unix.ETHTOOL_SGRO, "lro": unix.ETHTOOL_SFLAGS}[f.Name]
	bit := uint32(1)
	if f.Name == "lro" {
		bit = flagLRO
	}
	now, err := ethtoolValue(fd, device, get, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		now, err = 0, nil // it has none
	}
	if err != nil {
		return false, err
	}
	wanted := now &^ bit
	on, err := position(f.To)
	if err != nil {
		return false, err
	}
	if on {
		wanted |= bit
	}
	if now == wanted {
		return true, nil
	}
	// A device that has the feature fixed says so, or says nothing and leaves it.
	if _, err := ethtoolValue(fd, device, set, wanted); err != nil {
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) {
			return false, nil
		}
		return false, err
	}
	now, err = ethtoolValue(fd, device, get, 0)
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
	if !slices.Contains(b.notes, sentence) {
		b.notes = append(b.notes, sentence)
	}
}

// Notes is testbed.Instruments.Notes.
func (l *Testbed) Notes() []string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.notes)
}

// offloads asks by ethtool which work a device of the calling thread's namespace leaves to later or other hands. A device
// that knows no answer has none.
func offloads(device string) (map[string]bool, error) {
	fd, done, err := ethtoolSocket()
	if err != nil {
		return nil, err
	}
	defer done()
	found := map[string]bool{}
	for _, o := range []struct {
		name    string
		command uint32
	}{
		{"rx-checksum", unix.ETHTOOL_GRXCSUM}, {"tx-checksum", unix.ETHTOOL_GTXCSUM}, {"scatter-gather", unix.ETHTOOL_GSG},
		{"tso", unix.ETHTOOL_GTSO}, {"gso", unix.ETHTOOL_GGSO}, {"gro", unix.ETHTOOL_GGRO},
	} {
		value, err := ethtoolValue(fd, device, o.command, 0)
		if errors.Is(err, unix.EOPNOTSUPP) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask for %s: %w", o.name, err)
		}
		found[o.name] = value != 0
	}
	flags, err := ethtoolValue(fd, device, unix.ETHTOOL_GFLAGS, 0)
	if err == nil {
		found["lro"] = flags&flagLRO != 0
	} else if !errors.Is(err, unix.EOPNOTSUPP) {
		return nil, fmt.Errorf("ask for lro: %w", err)
	}
	return found, nil
}

// flagLRO is ETH_FLAG_LRO of linux/ethtool.h.
const flagLRO = 1 << 15

// ethtoolSocket opens a socket for ethtoolValue.
func ethtoolSocket() (fd int, done func(), err error) {
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, nil, fmt.Errorf("open a socket: %w", err)
	}
	return fd, func() { _ = unix.Close(fd) }, nil
}

// ethtoolValue sends a command with a number and returns the number that it answers with.
func ethtoolValue(fd int, device string, command, data uint32) (uint32, error) {
	value := struct{ command, data uint32 }{command, data}
	request, err := unix.NewIfreq(device)
	if err != nil {
		return 0, err
	}
	// struct ifreq with a pointer to the value in its union.
	var raw struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(raw.name[:], request.Name())
	raw.data = unsafe.Pointer(&value)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&raw)))
	if errno != 0 {
		return 0, errno
	}
	return value.data, nil
}
