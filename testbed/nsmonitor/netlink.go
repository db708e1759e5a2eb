package nsmonitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/sys/unix"
)

// netlinkSocket asks the kernel for lists without parsing more of them than is wanted. It is not safe for concurrent use.
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
	order := binary.NativeEndian
	question := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(body))
	order.PutUint32(question, uint32(unix.NLMSG_HDRLEN+len(body)))
	order.PutUint16(question[4:], kind)
	order.PutUint16(question[6:], unix.NLM_F_REQUEST|flags)
	order.PutUint32(question[8:], s.serial)
	if err := unix.Sendto(s.fd, append(question, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
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
		for m, err := range messages(s.buffer[:n]) {
			switch {
			case err != nil:
				return err
			case m.serial != s.serial: // of a list that was given up
				continue
			case m.flags&unix.NLM_F_DUMP_INTR != 0:
				changed = unix.EINTR
			}
			switch m.kind {
			case unix.NLMSG_DONE:
				return changed
			case unix.NLMSG_ERROR:
				return netlinkError(m.body)
			}
			each(m.body)
			if flags&unix.NLM_F_DUMP == 0 {
				return nil
			}
		}
	}
}

// message is one netlink message.
type message struct {
	kind, flags uint16
	serial      uint32
	body        []byte
}

// messages are the netlink messages in a text that was read from a socket.
func messages(text []byte) iter.Seq2[message, error] {
	order := binary.NativeEndian
	return func(yield func(message, error) bool) {
		for len(text) >= unix.NLMSG_HDRLEN {
			size := int(order.Uint32(text))
			if size < unix.NLMSG_HDRLEN || size > len(text) {
				yield(message{}, fmt.Errorf("a netlink message of %d bytes in %d", size, len(text)))
				return
			}
			m := message{order.Uint16(text[4:]), order.Uint16(text[6:]), order.Uint32(text[8:]), text[unix.NLMSG_HDRLEN:size]}
			if !yield(m, nil) {
				return
			}
			text = text[min(aligned(size), len(text)):]
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
