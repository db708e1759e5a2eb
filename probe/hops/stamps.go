package hops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/internal/native"
	"netdelta/network"
)

// StampedSpec says between which sockets messages are exchanged whose time stamps are taken.
type StampedSpec struct {
	Protocol network.Protocol
	// Message is the payload's size in bytes.
	Message int
	// Listen is where the server listens, Server how the client reaches it.
	Listen, Server netip.AddrPort
	// AtClient and AtServer run a function inside the network namespace of either end.
	AtClient, AtServer func(func() error) error
	// CPU is the processor that both ends run on; negative is any.
	CPU int
}

// StepBetween is all that lies between the first device on the way and the last.
const StepBetween Step = "from the first device to the last"

// Stamped exchanges messages and takes the kernel's own time stamps of them (SO_TIMESTAMPING): when the first device was given
// the message, and when the stack of the receiver got it. It needs neither eBPF nor any right beyond the namespaces, and sees
// less: three stretches in each direction. Both ends take turns on one thread, so that no program has to be woken up. client
// and server name the namespaces.
func Stamped(spec StampedSpec, transactions int, client, server string) (request, response []Hop, followed Followed, err error) {
	e := &stampedEnds{spec: spec}
	defer func() { err = errors.Join(err, e.close()) }()
	if err := e.open(); err != nil {
		return nil, nil, followed, fmt.Errorf("exchange messages with time stamps: %w", err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread, with its processor, ends here
		done <- e.exchange(transactions, &followed)
	}()
	if err := <-done; err != nil {
		return nil, nil, followed, fmt.Errorf("exchange messages with time stamps: %w", err)
	}
	return stampedHops(client, server), stampedHops(server, client), followed, nil
}

// stampedHops are the stretches between a message's four times.
func stampedHops(from, to string) []Hop {
	first, last := from+" first device", to+" last device"
	return []Hop{
		{Step: StepOut, Where: from, From: from + " program", To: first},
		{Step: StepBetween, From: first, To: last},
		{Step: StepDelivery, Where: to, From: last, To: to + " program"},
	}
}

// stampedPlaces are where the kernel takes its stamps.
func stampedPlaces() []Point { return []Point{{Kind: Sent}, {Kind: Received}} }

// stampedEnds are the sockets of both ends.
type stampedEnds struct {
	spec           StampedSpec
	client, server int
	files          []int
	buffer         []byte
	control        []byte
}

func (e *stampedEnds) close() error {
	errs := gather.Each(e.files, unix.Close)
	e.files = nil
	return errors.Join(errs...)
}

// stampPatience is how long a message may take.
const stampPatience = 5 * time.Second

func (e *stampedEnds) open() error {
	e.buffer, e.control = make([]byte, e.spec.Message), make([]byte, 512)
	var listener int
	err := e.spec.AtServer(func() error {
		var err error
		if listener, err = e.socket(); err != nil {
			return err
		}
		if err := unix.Bind(listener, sockaddr(e.spec.Listen)); err != nil {
			return fmt.Errorf("bind %v: %w", e.spec.Listen, err)
		}
		if e.spec.Protocol == network.TCP {
			return unix.Listen(listener, 1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = e.spec.AtClient(func() error {
		var err error
		if e.client, err = e.socket(); err != nil {
			return err
		}
		return unix.Connect(e.client, sockaddr(e.spec.Server))
	})
	if err != nil {
		return fmt.Errorf("connect to %v: %w", e.spec.Server, err)
	}
	if e.spec.Protocol == network.UDP {
		e.server = listener
		return e.greet()
	}
	if e.server, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC); err != nil {
		return fmt.Errorf("accept the connection: %w", err)
	}
	e.files = append(e.files, e.server)
	return e.prepare(e.server)
}

// greet sends one datagram, so that the server knows the client.
func (e *stampedEnds) greet() error {
	if _, err := unix.Write(e.client, e.buffer); err != nil {
		return fmt.Errorf("send the first datagram: %w", err)
	}
	_, from, err := unix.Recvfrom(e.server, e.buffer, 0)
	if err != nil {
		return fmt.Errorf("wait for the first datagram: %w", err)
	}
	return unix.Connect(e.server, from)
}

func (e *stampedEnds) socket() (int, error) {
	family, kind := unix.AF_INET, unix.SOCK_STREAM
	if e.spec.Server.Addr().Is6() {
		family = unix.AF_INET6
	}
	if e.spec.Protocol == network.UDP {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a socket: %w", err)
	}
	e.files = append(e.files, fd)
	return fd, e.prepare(fd)
}

// prepare asks for time stamps, for small segments at once, and that nothing waits for ever.
func (e *stampedEnds) prepare(fd int) error {
	stamps := unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_TSONLY
	patience := unix.NsecToTimeval(stampPatience.Nanoseconds())
	errs := []error{
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stamps),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &patience),
	}
	if e.spec.Protocol == network.TCP {
		errs = append(errs, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("prepare a socket: %w", err)
	}
	return nil
}

// exchange runs the transactions, one after another.
func (e *stampedEnds) exchange(transactions int, f *Followed) error {
	if e.spec.CPU >= 0 {
		if err := native.Pin(e.spec.CPU); err != nil {
			return err
		}
	}
	f.Request.Places, f.Response.Places = stampedPlaces(), stampedPlaces()
	for range transactions {
		there, ok1, err := e.message(e.client, e.server)
		if err != nil {
			return err
		}
		back, ok2, err := e.message(e.server, e.client)
		if err != nil {
			return err
		}
		if !ok1 || !ok2 {
			f.Otherwise++
			continue
		}
		f.Request.Times = append(f.Request.Times, there)
		f.Response.Times = append(f.Response.Times, back)
	}
	return nil
}

// message goes from one socket to the other. Its times are when it was written, given to a device, received, and read; ok is
// false where the kernel gave no stamps.
func (e *stampedEnds) message(from, to int) (times []int64, ok bool, err error) {
	began, err := now()
	if err != nil {
		return nil, false, err
	}
	if n, err := unix.Write(from, e.buffer); err != nil || n < len(e.buffer) {
		return nil, false, fmt.Errorf("send a message: %d of %d bytes: %w", n, len(e.buffer), err)
	}
	received := int64(0)
	for got := 0; got < len(e.buffer); {
		n, controls, flags, _, err := unix.Recvmsg(to, e.buffer, e.control, 0)
		if err != nil || n <= 0 {
			return nil, false, fmt.Errorf("receive a message: %d bytes: %w", n, err)
		}
		got += n
		if at, found := stamp(e.control[:controls]); found && flags&unix.MSG_CTRUNC == 0 {
			received = at
		}
	}
	ended, err := now()
	if err != nil {
		return nil, false, err
	}
	sent := int64(0)
	for {
		_, controls, _, _, err := unix.Recvmsg(from, nil, e.control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			break // no more stamps
		}
		if at, found := stamp(e.control[:controls]); found {
			sent = at
		}
	}
	times = []int64{began, sent, received, ended}
	return times, began <= sent && sent <= received && received <= ended, nil
}

// stamp finds the software time stamp in control messages: the first of three (struct scm_timestamping).
func stamp(control []byte) (int64, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		const size = 16
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPING && len(m.Data) >= size {
			seconds, nanoseconds := binary.NativeEndian.Uint64(m.Data), binary.NativeEndian.Uint64(m.Data[8:])
			if at := int64(seconds)*int64(time.Second) + int64(nanoseconds); at > 0 {
				return at, true
			}
		}
	}
	return 0, false
}

// now reads the clock that stamps are taken from.
func now() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &t); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return t.Nano(), nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
}
