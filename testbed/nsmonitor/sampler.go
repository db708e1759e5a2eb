package nsmonitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

const (
	// snapLength holds all headers of a packet that is wrapped once over IPv6 with a tag on either side: 2x(14+4+40) for
	// Ethernet, VLAN and IPv6, 16 for UDP and VXLAN, and 60 for the longest TCP header.
	snapLength = 192
	// roomForPackets is what one namespace may have waiting: several thousand heads of packets.
	roomForPackets = 8 << 20
	// batch is how many packets are read with one system call, batches how many times at most: a flood must end.
	batch   = 64
	batches = 1024

	// vnetHeader is the length of struct virtio_net_hdr, which the kernel puts before each packet.
	vnetHeader = 10
	gsoNone    = 0
	vlanTag    = 4
	macs       = 12 // the two addresses of an Ethernet header, after which a VLAN tag stands
)

// Sampler sees all packets of a namespace, as each of its devices sees them.
type Sampler struct {
	where network.Space
	name  func(index int) string
	fd    int
	from  [batch]unix.RawSockaddrLinklayer
	ancil [batch][auxiliary]byte
	parts [batch]unix.Iovec
	heads [batch]messageHeader
}

// messageHeader is struct mmsghdr.
type messageHeader struct {
	unix.Msghdr
	length uint32
	_      [4]byte
}

const (
	sizeofAuxdata = int(unsafe.Sizeof(unix.TpacketAuxdata{}))
	// auxiliary is the room for one struct tpacket_auxdata as a control message.
	auxiliary = unix.SizeofCmsghdr + sizeofAuxdata + 8
)

// NewSampler is a sampler of the namespace, whose devices have the names that name says. It sees nothing before Open.
func NewSampler(where network.Space, name func(index int) string) *Sampler {
	return &Sampler{where: where, name: name, fd: -1}
}

// Open makes the socket in the namespace of the calling thread. Bound last, it sees nothing before it is set up. The error is a
// *testbed.PermissionError where this user may not, and a *testbed.UnsupportedError where the kernel can't.
func (s *Sampler) Open() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return refusal(err)
	}
	if err := setUpPacketSocket(fd); err != nil {
		return errors.Join(refusal(err), unix.Close(fd))
	}
	s.fd = fd
	return nil
}

// refusal turns the kernel's refusal of a packet socket into one that says what is missing.
func refusal(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return &testbed.PermissionError{
			Doing: "open a packet socket", Need: "CAP_NET_RAW",
			Fix: "run it as root, or in a user namespace with unshare -Urnm", Err: err,
		}
	case errors.Is(err, unix.EAFNOSUPPORT):
		return &testbed.UnsupportedError{
			Feature: "a sample of packets", Need: "packet sockets (CONFIG_PACKET)",
			Fix: "load them with modprobe af_packet, or run it on a kernel that has them",
		}
	}
	return err
}

func setUpPacketSocket(fd int) error {
	// The program of the filter: keep the head of each packet.
	keep := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: snapLength}}
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &keep[0]}); err != nil {
		return fmt.Errorf("keep only the heads of packets: %w", err)
	}
	for _, o := range []struct {
		level, name, value int
		what               string
	}{
		{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1, "ask for the length of packets"},
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1, "ask for the segments of packets"},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
			return fmt.Errorf("%s: %w", o.what, err)
		}
	}
	// Without the right to force it, as much room as anyone may have.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, roomForPackets) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, roomForPackets); err != nil {
			return fmt.Errorf("make room for packets: %w", err)
		}
	}
	all := uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8 // in network order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all}); err != nil {
		return fmt.Errorf("attach to all devices: %w", err)
	}
	return nil
}

// Close ends the sample. The kernel takes many milliseconds over it; what it does first is to show the socket no more packets.
func (s *Sampler) Close() error {
	if err := unix.Close(s.fd); err != nil {
		return fmt.Errorf("close the packet socket of %s: %w", s.where, err)
	}
	return nil
}

// Read takes what has come, without waiting, and how many packets there was no room for.
func (s *Sampler) Read() (seen []testbed.Packet, missed int, err error) {
	empty := false
	for i := 0; i < batches && !empty; i++ {
		buffers := make([]byte, batch*(vnetHeader+snapLength)) // the packets keep it
		n, err := s.receive(buffers)
		switch {
		case errors.Is(err, unix.EAGAIN):
			empty = true
			continue
		case errors.Is(err, unix.EINVAL):
			missed++ // cut up in a way for which struct virtio_net_hdr has no word; the packet is gone
			continue
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENETDOWN):
			continue // a device went down; the packets before are still there
		case err != nil:
			return nil, 0, fmt.Errorf("in %s: %w", s.where, err)
		}
		for i := range n {
			if p, ok := s.packet(i); ok {
				seen = append(seen, p)
			}
		}
	}
	stats, err := unix.GetsockoptTpacketStats(s.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return nil, 0, fmt.Errorf("in %s: ask for the packets that were missed: %w", s.where, err)
	}
	return seen, missed + int(stats.Drops), nil
}

// receive reads up to a batch of packets.
func (s *Sampler) receive(buffers []byte) (int, error) {
	const each = vnetHeader + snapLength
	for i := range s.heads {
		s.parts[i] = unix.Iovec{Base: &buffers[i*each]}
		s.parts[i].SetLen(each)
		h := &s.heads[i].Msghdr
		*h = unix.Msghdr{Name: (*byte)(unsafe.Pointer(&s.from[i])), Namelen: unix.SizeofSockaddrLinklayer, Iov: &s.parts[i], Control: &s.ancil[i][0]}
		h.SetIovlen(1)
		h.SetControllen(auxiliary)
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.heads[0])), batch, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// packet makes a packet of the i-th message of the last batch.
func (s *Sampler) packet(i int) (testbed.Packet, bool) {
	got := int(s.heads[i].length)
	if got < vnetHeader {
		return testbed.Packet{}, false
	}
	whole := unsafe.Slice(s.parts[i].Base, got)
	aux, ok := s.auxiliary(i)
	if !ok {
		return testbed.Packet{}, false
	}
	p := testbed.Packet{
		Device:   network.Device{In: s.where, Name: s.name(int(s.from[i].Ifindex))},
		Outgoing: s.from[i].Pkttype == unix.PACKET_OUTGOING,
		Length:   unit.Bytes(aux.Len),
		Head:     whole[vnetHeader:],
	}
	switch s.from[i].Hatype {
	case unix.ARPHRD_ETHER, unix.ARPHRD_LOOPBACK:
	default: // tunnels: what stands before the IP header, if anything does, is kept apart
		p.Bare = true
	}
	const gsoType, gsoSize = 1, 4
	if whole[gsoType] != gsoNone {
		p.Segment = unit.Bytes(binary.NativeEndian.Uint16(whole[gsoSize:]))
	}
	if aux.Status&unix.TP_STATUS_VLAN_VALID != 0 && len(p.Head) >= macs {
		p.Head, p.Length = tagged(p.Head, aux), p.Length+vlanTag
	}
	return p, true
}

// auxiliary returns the auxiliary data that the kernel gave with the i-th packet.
func (s *Sampler) auxiliary(i int) (unix.TpacketAuxdata, bool) {
	messages, err := unix.ParseSocketControlMessage(s.ancil[i][:s.heads[i].Controllen])
	if err != nil {
		return unix.TpacketAuxdata{}, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_PACKET && m.Header.Type == unix.PACKET_AUXDATA && len(m.Data) >= sizeofAuxdata {
			return *(*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0])), true
		}
	}
	return unix.TpacketAuxdata{}, false
}

// tagged puts the VLAN tag, which the kernel keeps apart, back to where it stands on the wire.
func tagged(head []byte, aux unix.TpacketAuxdata) []byte {
	protocol := uint16(unix.ETH_P_8021Q)
	if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		protocol = aux.Vlan_tpid
	}
	whole := append(make([]byte, 0, len(head)+vlanTag), head[:macs]...)
	whole = binary.BigEndian.AppendUint16(whole, protocol)
	whole = binary.BigEndian.AppendUint16(whole, aux.Vlan_tci)
	return append(whole, head[macs:]...)
}
