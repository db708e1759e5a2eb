package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// defaultCongestion is the congestion control of sockets whose parameters name none: systems have different defaults, and
// figures taken under different ones can't be compared.
const defaultCongestion = "cubic"

// congestion is the congestion control that a socket of this configuration uses.
func (cfg *Config) congestion() string {
	if cfg.Params.CongestionControl != "" {
		return cfg.Params.CongestionControl
	}
	return defaultCongestion
}

// connections is how many connections or flows a client of this configuration opens.
func (cfg *Config) connections() int { return max(cfg.Params.Connections, 1) }

func family(a netip.Addr) int {
	if a.Unmap().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// encode is an address as the kernel takes it. IPv6 zones are not supported: pods don't have link-local addresses.
func encode(a netip.AddrPort) address {
	var e address
	binary.NativeEndian.PutUint16(e.raw[:], uint16(family(a.Addr())))
	binary.BigEndian.PutUint16(e.raw[2:], a.Port())
	if ip := a.Addr().Unmap(); ip.Is4() {
		four := ip.As4()
		copy(e.raw[4:], four[:])
		e.length = unix.SizeofSockaddrInet4
	} else {
		sixteen := ip.As16()
		copy(e.raw[8:], sixteen[:])
		e.length = unix.SizeofSockaddrInet6
	}
	return e
}

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if ip := a.Addr().Unmap(); ip.Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// open opens a socket of the workload's protocol, with the options that its parameters ask for.
func open(cfg *Config, at netip.Addr) (fd int, err error) {
	kind := unix.SOCK_STREAM
	if cfg.Kind.datagrams() {
		kind = unix.SOCK_DGRAM
	}
	fd, err = unix.Socket(family(at), kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open a socket: %w", err)
	}
	if err = tune(cfg, fd); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func tune(cfg *Config, fd int) error {
	if cfg.Params.BusyPoll > 0 {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, int(cfg.Params.BusyPoll.Microseconds())); err != nil {
			return fmt.Errorf("busy poll for %v: %w; it needs CAP_NET_ADMIN", cfg.Params.BusyPoll, err)
		}
	}
	if cfg.Kind.datagrams() {
		return nil
	}
	if !cfg.Params.Nagle {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return fmt.Errorf("set TCP_NODELAY: %w", err)
		}
	}
	if low := cfg.unsent(); low > 0 {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, low); err != nil {
			return fmt.Errorf("set TCP_NOTSENT_LOWAT: %w", err)
		}
	}
	if cfg.Kind != ConnectRR {
		// Closing ends the connection at once and leaves no TIME_WAIT behind: the port can be used again.
		if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
			return fmt.Errorf("set SO_LINGER: %w", err)
		}
	}
	want := cfg.congestion()
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, want)
	if errors.Is(err, unix.EPERM) && want == defaultCongestion {
		return nil // this namespace allows no choice, as in a pod without rights: the trial says which one it was
	}
	if err != nil {
		return fmt.Errorf("use congestion control %s: %w; this namespace has %s", want, err, available())
	}
	got, err := congestionOf(fd)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("use congestion control %s: the kernel took %s", want, got)
	}
	return nil
}

// How much of a stream may wait in its sockets for a link of a given rate: so much time of the link, and no less than a few
// packets for each connection.
const (
	unsentTime  = 50 * time.Millisecond
	unsentLeast = 16 << 10
)

// unsent is how much a connection may hold back that is not sent yet, in bytes; 0 leaves it to the kernel. Where the link is
// slow, the kernel would take megabytes, and a burst would end only when they have crossed it.
func (cfg *Config) unsent() int {
	link := cfg.Params.Conditions.SlowestLink()
	if cfg.Kind != StreamOut || link.Rate == 0 {
		return 0
	}
	bytes := float64(link.Rate) / 8 * unsentTime.Seconds() * float64(link.Count)
	return max(int(bytes)/cfg.connections(), unsentLeast)
}

func congestionOf(fd int) (string, error) {
	got, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return "", fmt.Errorf("read the congestion control: %w", err)
	}
	return strings.TrimRight(got, "\x00"), nil
}

func available() string {
	names, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return "names that can't be read: " + err.Error()
	}
	return strings.TrimSpace(string(names))
}

// receiveTimeout makes blocking receives of a socket end after a time.
func receiveTimeout(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return fmt.Errorf("set SO_RCVTIMEO: %w", err)
	}
	return nil
}

// datagramBuffer is the receive buffer of datagram sockets, so that a moment without the processor is not a loss.
const datagramBuffer = 4 << 20

func enlargeBuffer(fd int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, datagramBuffer) == nil {
		return nil
	}
	// Without privilege the kernel gives what it allows.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, datagramBuffer); err != nil {
		return fmt.Errorf("set SO_RCVBUF: %w", err)
	}
	return nil
}

// listen opens the socket of a server.
func listen(cfg *Config) (fd int, err error) {
	fd, err = open(cfg, cfg.Local.Addr())
	if err != nil {
		return -1, fmt.Errorf("%s: listen on %v: %w", cfg.Workload, cfg.Local, err)
	}
	if err = bindAndListen(cfg, fd); err != nil {
		_ = unix.Close(fd)
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("%w: another server has this port; choose another port or end that server", err)
		}
		return -1, fmt.Errorf("%s: listen on %v: %w", cfg.Workload, cfg.Local, err)
	}
	return fd, nil
}

func bindAndListen(cfg *Config, fd int) error {
	if cfg.Kind.datagrams() {
		if err := enlargeBuffer(fd); err != nil {
			return err
		}
		if err := unix.Bind(fd, sockaddr(cfg.Local)); err != nil {
			return err
		}
		// Only now: a second server on this port is refused, but sockets for single clients may share it.
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	// Connections of an earlier server in TIME_WAIT are no hindrance.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("set SO_REUSEADDR: %w", err)
	}
	if err := unix.Bind(fd, sockaddr(cfg.Local)); err != nil {
		return err
	}
	return unix.Listen(fd, max(128, cfg.connections()))
}

// source is the address that a client's connection number i is bound to; invalid when it is left to the kernel.
func (cfg *Config) source(i int) netip.AddrPort {
	if !cfg.Local.IsValid() {
		return netip.AddrPort{}
	}
	addr := cfg.Local.Addr()
	if addr.IsUnspecified() && family(addr) != family(cfg.Remote.Addr()) {
		addr = netip.IPv6Unspecified()
		if cfg.Remote.Addr().Unmap().Is4() {
			addr = netip.IPv4Unspecified()
		}
	}
	port := cfg.Local.Port()
	if port != 0 {
		port += uint16(i)
	}
	return netip.AddrPortFrom(addr, port)
}

// dial opens connection number i of a client.
func dial(ctx context.Context, cfg *Config, i int) (fd int, err error) {
	fd, err = open(cfg, cfg.Remote.Addr())
	if err != nil {
		return -1, err
	}
	if err = bindAndConnect(ctx, cfg, fd, i); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func bindAndConnect(ctx context.Context, cfg *Config, fd, i int) error {
	if from := cfg.source(i); from.IsValid() {
		if !cfg.Kind.datagrams() {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
				return fmt.Errorf("set SO_REUSEADDR: %w", err)
			}
		}
		if err := unix.Bind(fd, sockaddr(from)); err != nil {
			return fmt.Errorf("bind to %v: %w; give the client other source ports", from, err)
		}
	}
	if err := connect(ctx, fd, cfg.Remote); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if cfg.Kind.datagrams() {
		if err := enlargeBuffer(fd); err != nil {
			return err
		}
		if cfg.Params.Search {
			return receiveTimeout(fd, reportTimeout)
		}
		return receiveTimeout(fd, lossTimeout)
	}
	return nil
}

// connect connects a socket, for as long as ctx allows.
func connect(ctx context.Context, fd int, to netip.AddrPort) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	err := unix.Connect(fd, sockaddr(to))
	for err == unix.EINPROGRESS || err == unix.EINTR {
		if ctx.Err() != nil {
			return fmt.Errorf("no answer: %w", context.Cause(ctx))
		}
		var n int
		n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 10)
		switch {
		case err != nil && err != unix.EINTR:
			return err
		case n == 0:
			err = unix.EINPROGRESS
		default:
			if code, optErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); optErr != nil {
				return optErr
			} else if err = nil; code != 0 {
				err = unix.Errno(code)
			}
		}
	}
	switch err {
	case nil:
		return unix.SetNonblock(fd, false)
	case unix.ECONNREFUSED:
		return fmt.Errorf("%w: no server listens there", err)
	case unix.EADDRNOTAVAIL:
		return fmt.Errorf("%w: the source port is still held by an earlier connection; give the client another one", err)
	}
	return err
}

// fillOptions notes what a connect loop needs to open sockets by itself.
func fillOptions(cfg *Config, c *control) error {
	c.family = uintptr(family(cfg.Remote.Addr()))
	c.remote = encode(cfg.Remote)
	o := &c.options
	o.one = 1
	o.timeout = unix.NsecToTimeval(connectTimeout.Nanoseconds())
	o.noDelay = !cfg.Params.Nagle
	o.busyPoll = int32(cfg.Params.BusyPoll.Microseconds())
	if from := cfg.source(0); from.IsValid() && (from.Port() != 0 || !from.Addr().IsUnspecified()) {
		o.bind = true
		c.local = encode(from)
		c.ports = 1
		if from.Port() != 0 {
			c.ports = ConnectPorts
		}
	}
	// Setting it costs a system call per connection: only where it is not what a new socket has anyway.
	probe, err := unix.Socket(int(c.family), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a socket: %w", err)
	}
	defer func() { _ = unix.Close(probe) }()
	usual, err := congestionOf(probe)
	if err != nil {
		return err
	}
	want := cfg.congestion()
	if err := tune(cfg, probe); err != nil {
		return err
	}
	allowed, err := congestionOf(probe)
	if err != nil {
		return err
	}
	if usual != want && allowed == want {
		o.congestionLen = uintptr(copy(o.congestion[:], want))
	}
	return nil
}

// infoOf is TCP_INFO of a connection, with its congestion control.
func infoOf(fd int) (*unix.TCPInfo, string, error) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return nil, "", fmt.Errorf("read TCP_INFO: %w", err)
	}
	congestion, err := congestionOf(fd)
	return info, congestion, err
}
