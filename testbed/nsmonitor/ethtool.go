package nsmonitor

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// Ethtool is a socket that asks the devices of the namespace in which it was opened.
type Ethtool int

// OpenEthtool opens one in the namespace of the calling thread.
func OpenEthtool() (Ethtool, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a socket: %w", err)
	}
	return Ethtool(fd), nil
}

// Close closes the socket.
func (e Ethtool) Close() { _ = unix.Close(int(e)) }

// Value sends a command with a number and returns the number of the answer.
func (e Ethtool) Value(device string, command, data uint32) (uint32, error) {
	value := struct{ command, data uint32 }{command, data}
	err := e.send(device, unsafe.Pointer(&value))
	return value.data, err
}

// send sends a command, which begins what data points to.
func (e Ethtool) send(device string, data unsafe.Pointer) error {
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	// struct ifreq with a pointer in its union.
	var raw struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(raw.name[:], request.Name())
	raw.data = data
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(e), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&raw))); errno != 0 {
		return errno
	}
	return nil
}

// settings is struct ethtool_cmd.
type settings struct {
	command   uint32
	_         [8]byte
	speed     uint16
	_         [6]byte
	_         [8]byte
	speedHigh uint16
	_         [14]byte
}

// card returns the driver and the speed of a device of the calling thread's namespace. What is not known is zero: devices of
// software have no speed.
func card(device string) (driver string, speed unit.BitsPerSecond) {
	e, err := OpenEthtool()
	if err != nil {
		return "", 0
	}
	defer e.Close()
	if info, err := unix.IoctlGetEthtoolDrvinfo(int(e), device); err == nil {
		driver = unix.ByteSliceToString(info.Driver[:])
	}
	set := settings{command: unix.ETHTOOL_GSET}
	if e.send(device, unsafe.Pointer(&set)) == nil {
		speed = speedOf(set.speed, set.speedHigh)
	}
	return driver, speed
}
