package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/gather"
	"netdelta/internal/native"
	"netdelta/result"
)

// ExactSpec says where the two ends of an exact measurement are: both live in this one process, so that one clock sees a
// request leave and arrive.
type ExactSpec struct {
	Params result.Params
	// Listen is where the server listens, Local the client's address and port, Server how the client reaches the server.
	Listen, Local, Server netip.AddrPort
	// AtClient and AtServer run a function inside the network namespace of the client's pod and of the server's.
	AtClient, AtServer func(func() error) error
}

// ExactPair is both ends of a workload on an open connection. Close is idempotent.
type ExactPair interface {
	// Exchange runs so many transactions, one after another, and gives the time of each.
	Exchange(transactions int) (ExactTimes, error)
	Close() error
}

// ExactTimes are the times of transactions in nanoseconds of the kernel's monotonic clock: from before the request is sent, at
// Begun, until the whole response is there, and the same parted where the server has the whole request.
type ExactTimes struct{ Begun, RoundTrip, Request, Response []int64 }

// exactTimeout is how long an end waits for the other. Where a clock counts instructions, waiting costs nothing.
const exactTimeout = 5 * time.Second

// exactPair is both ends of a request-response workload in this process, each on a thread of its own while they exchange.
type exactPair struct {
	cfg    Config
	arena  *native.Arena
	files  []int
	client *exactEnd
	server *exactEnd
}

// OpenExact opens both ends on one connection. Both are pinned to the processor of cfg.
func OpenExact(ctx context.Context, cfg Config, spec ExactSpec) (ExactPair, error) {
	p := &exactPair{cfg: cfg}
	if err := errors.Join(p.reserve(), ctx.Err()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	client, server, err := p.connect(ctx, spec)
	if err == nil {
		err = p.bound(client, server)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %v to %v: %w", cfg.Workload, spec.Local, spec.Server, err), p.Close())
	}
	return p, nil
}

// reserve maps the memory of both ends.
func (p *exactPair) reserve() error {
	message := uintptr(p.cfg.Params.Message)
	end := native.Reserved(unsafe.Sizeof(exactEnd{})) + 2*native.Reserved(message) + 2*native.Reserved(unsafe.Sizeof([exactMost]int64{}))
	var err error
	if p.arena, err = native.NewArena(2 * end); err != nil {
		return fmt.Errorf("%s: %w", p.cfg.Workload, err)
	}
	for _, e := range []**exactEnd{&p.client, &p.server} {
		*e = (*exactEnd)(p.arena.Take(unsafe.Sizeof(exactEnd{})))
		// The kernel's own clock: both ends read it, and where it counts instructions it is exact.
		(*e).clock, (*e).message = clock.Kernel(), message
		(*e).out, (*e).in = p.arena.Take(message), p.arena.Take(message)
		(*e).begun = (*[exactMost]int64)(p.arena.Take(unsafe.Sizeof([exactMost]int64{})))
		(*e).ended = (*[exactMost]int64)(p.arena.Take(unsafe.Sizeof([exactMost]int64{})))
		body := unsafe.Slice((*byte)((*e).out), message)
		for i := range body {
			body[i] = byte(i*31 + 7)
		}
	}
	return nil
}

// connect opens the sockets inside the pods' namespaces, and gives those that are connected to each other.
func (p *exactPair) connect(ctx context.Context, spec ExactSpec) (client, server int, err error) {
	cfg := p.cfg
	cfg.Local = spec.Listen
	err = spec.AtServer(func() error {
		fd, err := listen(&cfg)
		if err != nil {
			return err
		}
		p.files = append(p.files, fd)
		return p.bound(fd)
	})
	if err != nil {
		return 0, 0, err
	}
	listener := p.files[0]
	cfg.Local, cfg.Remote = spec.Local, spec.Server
	ctx, cancel := context.WithTimeout(ctx, exactTimeout)
	defer cancel()
	err = spec.AtClient(func() error {
		if client, err = dial(ctx, &cfg, 0); err != nil {
			return err
		}
		p.files = append(p.files, client)
		return nil
	})
	switch {
	case err != nil:
		return 0, 0, err
	case cfg.Kind.datagrams():
		return client, listener, p.greet(client, listener)
	}
	server, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return 0, 0, fmt.Errorf("accept the connection: %w", err)
	}
	p.files = append(p.files, server)
	return client, server, nil
}

// greet sends one datagram, so that the server can connect its socket to where the client is seen from.
func (p *exactPair) greet(client, server int) error {
	if err := unix.Send(client, []byte{0}, 0); err != nil {
		return fmt.Errorf("send the first datagram: %w", err)
	}
	_, from, err := unix.Recvfrom(server, make([]byte, 1), 0)
	if err != nil {
		return fmt.Errorf("wait for the first datagram: %w", err)
	}
	if err := unix.Connect(server, from); err != nil {
		return fmt.Errorf("connect the server's socket to %v: %w", addrPort(from), err)
	}
	return nil
}

// bound makes sure that nothing waits for ever.
func (p *exactPair) bound(files ...int) error {
	tv := unix.NsecToTimeval(exactTimeout.Nanoseconds())
	for _, fd := range files {
		for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
			if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &tv); err != nil {
				return fmt.Errorf("bound the wait of a socket: %w", err)
			}
		}
	}
	if len(files) == 2 {
		p.client.fd, p.server.fd = int32(files[0]), int32(files[1])
	}
	return nil
}

// Exchange implements ExactPair.
func (p *exactPair) Exchange(transactions int) (ExactTimes, error) {
	var times ExactTimes
	fail := func(err error) (ExactTimes, error) {
		return times, fmt.Errorf("%s: %w", p.cfg.Workload, err)
	}
	if p.arena == nil {
		return fail(errClosed)
	}
	if transactions < 1 || transactions > exactMost {
		return fail(fmt.Errorf("%d transactions in one exchange: 1 to %d are allowed", transactions, exactMost))
	}
	p.client.transactions, p.server.transactions = int64(transactions), int64(transactions)
	server, err := native.Start(native.Thread{CPU: p.cfg.CPU, Files: []int32{p.server.fd}}, p.server.answer)
	if err != nil {
		return fail(err)
	}
	client, err := native.Start(native.Thread{CPU: p.cfg.CPU, Files: []int32{p.client.fd}}, p.client.ask)
	if err != nil {
		_ = unix.Shutdown(int(p.server.fd), unix.SHUT_RDWR)
		<-server
		return fail(err)
	}
	<-client
	if p.client.done < p.client.transactions {
		// The server would find out by its own timeout, too.
		_ = unix.Shutdown(int(p.server.fd), unix.SHUT_RDWR)
	}
	<-server
	if e := p.client; e.done < e.transactions {
		return fail(&brokenError{step: e.step, errno: e.errno, transaction: e.done + 1})
	}
	for i := range transactions {
		begun, there, ended := p.client.begun[i], p.server.ended[i], p.client.ended[i]
		times.Begun = append(times.Begun, begun)
		times.RoundTrip = append(times.RoundTrip, ended-begun)
		times.Request = append(times.Request, there-begun)
		times.Response = append(times.Response, ended-there)
	}
	return times, nil
}

// Close implements ExactPair.
func (p *exactPair) Close() error {
	errs := gather.Each(p.files, unix.Close)
	p.files = nil
	if p.arena != nil {
		errs = append(errs, p.arena.Free())
		p.arena = nil
	}
	return errors.Join(errs...)
}
