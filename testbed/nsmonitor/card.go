package nsmonitor

import (
	"bytes"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// driverInfo is struct ethtool_drvinfo.
type driverInfo struct {
	command uint32
	driver  [32]byte
	_       [160]byte
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

// Commands of linux/ethtool.h.
const (
	getSettings = 0x1
	getDriver   = 0x3
)

// card asks a device of the calling thread's namespace for its driver and its speed. What it does not know is zero: devices
// of software have no speed.
func card(device string) (driver string, speed unit.BitsPerSecond) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", 0
	}
	defer func() { _ = unix.Close(fd) }()
	info, set := driverInfo{command: getDriver}, settings{command: getSettings}
	if ethtool(fd, device, unsafe.Pointer(&info)) {
		name, _, _ := bytes.Cut(info.driver[:], []byte{0})
		driver = string(name)
	}
	if ethtool(fd, device, unsafe.Pointer(&set)) {
		speed = speedOf(set.speed, set.speedHigh)
	}
	return driver, speed
}

// ethtool sends a command, which begins what data points to, and says whether it was answered.
func ethtool(fd int, device string, data unsafe.Pointer) bool {
	// struct ifreq with a pointer in its union.
	var raw struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(raw.name[:unix.IFNAMSIZ-1], device)
	raw.data = data
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&raw)))
	return errno == 0
}
