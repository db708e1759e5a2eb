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

// Card returns the driver and the speed of a device of the calling thread's namespace. What is not known is zero: devices of
// software have no speed.
func Card(device string) (driver string, speed unit.BitsPerSecond) {
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

// featureBlocks is how many words of 32 features are asked for, more than any kernel has.
const featureBlocks = 4

// active is a row with a one for each feature of a device that is active and a zero for each other.
func (e Ethtool) active(device string) (string, error) {
	const bits = 32
	var asked struct {
		command, size uint32
		blocks        [featureBlocks]struct{ available, requested, active, fixed uint32 }
	}
	asked.command, asked.size = unix.ETHTOOL_GFEATURES, featureBlocks
	if err := e.send(device, unsafe.Pointer(&asked)); err != nil {
		return "", err
	}
	row := make([]byte, 0, featureBlocks*bits)
	for _, b := range asked.blocks[:min(asked.size, featureBlocks)] {
		for i := range bits {
			row = append(row, '0'+byte(b.active>>i&1))
		}
	}
	return string(row), nil
}

// featureNames are the kernel's names for the places in such a row, as any device gives them.
func (e Ethtool) featureNames(device string) ([]string, error) {
	const setOfFeatures, nameLength, most = 4, 32, 32 * featureBlocks // ETH_SS_FEATURES, ETH_GSTRING_LEN
	count := struct {
		command, _ uint32
		sets       uint64
		length     uint32
	}{command: unix.ETHTOOL_GSSET_INFO, sets: 1 << setOfFeatures}
	if err := e.send(device, unsafe.Pointer(&count)); err != nil {
		return nil, fmt.Errorf("ask for the number of features: %w", err)
	}
	if count.length > most {
		return nil, fmt.Errorf("the kernel has %d features, more than %d", count.length, most)
	}
	var asked struct {
		command, set, length uint32
		names                [most][nameLength]byte
	}
	asked.command, asked.set, asked.length = unix.ETHTOOL_GSTRINGS, setOfFeatures, count.length
	if err := e.send(device, unsafe.Pointer(&asked)); err != nil {
		return nil, fmt.Errorf("ask for the names of features: %w", err)
	}
	names := make([]string, min(asked.length, most))
	for i := range names {
		names[i] = unix.ByteSliceToString(asked.names[i][:])
	}
	return names, nil
}
