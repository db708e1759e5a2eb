// Package nsmonitor reads what the kernel counts in a network namespace, and samples the packets there: with a netlink socket,
// the files of the IP stack, and a packet socket. It is what testbeds are observed with, wherever the namespace is.
package nsmonitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"syscall"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// netlinkSocket asks the kernel for lists with one buffer, and without parsing more of them than is wanted: counters are read in all
// namespaces just before and after a load, up to twenty times until nothing moves. A reading of a few devices takes 24 µs of processor time
// and 1.3 KB of memory so, and 28 µs and 6.3 KB by the requests of the library, whose types it uses. It is not safe for concurrent use.
type netlinkSocket struct {
	fd     int
	buffer []byte
	serial uint32
}

// openNetlink opens one of a protocol in the namespace of the calling thread.
func openNetlink(protocol int) (*netlinkSocket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	return &netlinkSocket{fd: fd, buffer: make([]byte, 64<<10)}, nil
}

func (s *netlinkSocket) close() error { return unix.Close(s.fd) }

// dump asks for a list once and calls each for its entries. It is unix.EINTR where the kernel changed the list meanwhile.
func (s *netlinkSocket) dump(kind uint16, body []byte, each func(body []byte)) error {
	return s.ask(kind, unix.NLM_F_DUMP, body, each)
}

// ask sends a question and calls each for each message of the answer: one, or a whole list.
func (s *netlinkSocket) ask(kind, flags uint16, body []byte, each func(body []byte)) error {
	s.serial++
	question := nl.NewNetlinkRequest(int(kind), int(flags))
	question.Seq = s.serial
	question.AddRawData(body)
	if err := unix.Sendto(s.fd, question.Serialize(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("ask by netlink: %w", err)
	}
	var changed error
	for {
		n, _, err := unix.Recvfrom(s.fd, s.buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read an answer by netlink: %w", err)
		}
		messages, err := syscall.ParseNetlinkMessage(s.buffer[:aligned(n)])
		if err != nil {
			return fmt.Errorf("understand an answer by netlink: %w", err)
		}
		for _, m := range messages {
			switch {
			case m.Header.Seq != s.serial: // of a list that was given up
				continue
			case m.Header.Flags&unix.NLM_F_DUMP_INTR != 0:
				changed = unix.EINTR
			}
			switch m.Header.Type {
			case unix.NLMSG_DONE:
				return changed
			case unix.NLMSG_ERROR:
				return netlinkError(m.Data)
			}
			each(m.Data)
			if flags&unix.NLM_F_DUMP == 0 {
				return nil
			}
		}
	}
}

// attributes are the attributes of a message, by their numbers, up to the first that is cut off.
func attributes(text []byte) iter.Seq2[uint16, []byte] {
	const flags = unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER
	order := binary.NativeEndian
	return func(yield func(uint16, []byte) bool) {
		for len(text) >= unix.SizeofRtAttr {
			size := int(order.Uint16(text))
			if size < unix.SizeofRtAttr || size > len(text) || !yield(order.Uint16(text[2:])&^flags, text[unix.SizeofRtAttr:size]) {
				return
			}
			text = text[min(aligned(size), len(text)):]
		}
	}
}

// netlinkError is the error number of an answer, nil where it says that all is well.
func netlinkError(body []byte) error {
	if len(body) < 4 {
		return errors.New("the kernel gave an error without a number")
	}
	if number := -int32(binary.NativeEndian.Uint32(body)); number != 0 {
		return unix.Errno(number)
	}
	return nil
}

// aligned is where the next netlink message or attribute begins.
func aligned(size int) int { return (size + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }

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

// FeatureNames are the kernel's names for the places in such a row, as any device gives them.
func (e Ethtool) FeatureNames(device string) ([]string, error) {
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
