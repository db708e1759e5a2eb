package lab

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// offloads asks by ethtool which work a device of the calling thread's namespace leaves to later or other hands. A device
// that knows no answer has none.
func offloads(device string) (map[string]bool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	found := map[string]bool{}
	for _, o := range []struct {
		name    string
		command uint32
	}{
		{"rx-checksum", unix.ETHTOOL_GRXCSUM}, {"tx-checksum", unix.ETHTOOL_GTXCSUM}, {"scatter-gather", unix.ETHTOOL_GSG},
		{"tso", unix.ETHTOOL_GTSO}, {"gso", unix.ETHTOOL_GGSO}, {"gro", unix.ETHTOOL_GGRO},
	} {
		on, err := ethtool(fd, device, o.command)
		if errors.Is(err, unix.EOPNOTSUPP) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask for %s: %w", o.name, err)
		}
		found[o.name] = on
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

// ethtool sends a command that answers with one number, and tells whether that is not zero.
func ethtool(fd int, device string, command uint32) (bool, error) {
	value, err := ethtoolValue(fd, device, command, 0)
	return value != 0, err
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
