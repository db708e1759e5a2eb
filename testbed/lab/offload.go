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
	return found, nil
}

// ethtool sends a command that answers with one number.
func ethtool(fd int, device string, command uint32) (bool, error) {
	value := struct{ command, data uint32 }{command: command}
	request, err := unix.NewIfreq(device)
	if err != nil {
		return false, err
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
		return false, errno
	}
	return value.data != 0, nil
}
