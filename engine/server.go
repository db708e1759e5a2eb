package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
	"netdelta/internal/procfile"
	"netdelta/result"
)

// maxSessions is how many TCP connections a server that gives each a thread has at a time.
const maxSessions = 256

// server is the server's side: one loop for all clients, or one for each TCP connection.
type server struct {
	cfg      Config
	listener int
	shared   bool          // datagrams of all clients are answered
	client   netip.Addr    // whose datagrams else are, once one has come; the goroutine's that greets
	accepts  chan struct{} // closes when accepting has ended

	mu       sync.Mutex
	closed   bool
	sessions map[*session]struct{}
	gone     counters      // of sessions that have ended
	spent    time.Duration // by these
	dropped  uint64        // by their sockets
	queue    *overflows    // of the listening socket; nil for datagrams
	broken   error         // why connections could not be served
}

// session is a loop of a server.
type session struct {
	fd    int            // its connection, or the listening socket
	peer  netip.AddrPort // of a datagram session
	arena *native.Arena
	ctl   *control
	done  <-chan struct{}
}

// Serve starts a server. ctx bounds the start alone.
func Serve(ctx context.Context, cfg Config) (Server, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: listen on %v: %w", cfg.Workload, cfg.Local, err)
	}
	if cfg.Local.Port() == 0 {
		return nil, fmt.Errorf("%s: listen on %v: a server needs a port between 1 and 65535, so that the connection's addresses are the same in every network", cfg.Workload, cfg.Local)
	}
	fd, err := listen(&cfg)
	if err != nil {
		return nil, err
	}
	s := &server{cfg: cfg, listener: fd, shared: isShared(ctx), sessions: map[*session]struct{}{}, accepts: make(chan struct{})}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: listen on %v: %w", cfg.Workload, cfg.Local, err), s.release())
	}
	return s, nil
}

// start begins to serve.
func (s *server) start() error {
	if !s.cfg.Kind.datagrams() {
		s.queue = openOverflows()
	}
	if !s.threadPerConnection() {
		close(s.accepts)
		return s.begin(s.listener, netip.AddrPort{})
	}
	// The loop of a connection is pinned; a processor that can't be used must show now, not with the first connection.
	probe, err := native.Start(native.Thread{CPU: s.cfg.CPU}, func() {})
	if err != nil {
		return err
	}
	<-probe
	if s.cfg.Kind.datagrams() {
		go s.greet()
	} else {
		go s.accept()
	}
	return nil
}

// release closes what the server listens with.
func (s *server) release() error {
	err := unix.Close(s.listener)
	if s.queue != nil {
		err = errors.Join(err, s.queue.close())
	}
	return err
}

// threadPerConnection says whether each client's connection is served by a thread of its own, as the fastest servers of few
// clients do. Many connections share one thread.
func (s *server) threadPerConnection() bool {
	return s.cfg.Kind == StreamOut || (s.cfg.Kind == StreamRR || s.cfg.Kind == DatagramRR) && s.cfg.connections() == 1
}

// accept takes connections until the listening socket is shut down.
func (s *server) accept() {
	defer close(s.accepts)
	for {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_CLOEXEC)
		switch err {
		case nil:
			if err := s.begin(fd, netip.AddrPort{}); err != nil {
				_ = unix.Close(fd)
				s.note(err)
			}
		case unix.EINTR, unix.ECONNABORTED:
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			s.note(fmt.Errorf("accept a connection: %w", err))
			time.Sleep(10 * time.Millisecond)
		default:
			return
		}
		if s.isClosed() {
			return
		}
	}
}

func (s *server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// greet waits for the first datagram of each client, and gives the client a socket and a thread of its own.
func (s *server) greet() {
	defer close(s.accepts)
	message := make([]byte, s.cfg.Params.Message)
	for {
		n, from, err := unix.Recvfrom(s.listener, message, 0)
		if s.isClosed() {
			return
		}
		var errno unix.Errno
		if err != nil && !(errors.As(err, &errno) && lossy(errno)) {
			s.note(fmt.Errorf("receive: %w", err))
			return
		}
		if err != nil || n <= farewell {
			continue
		}
		peer := addrPort(from)
		if !s.shared && s.client.IsValid() && peer.Addr() != s.client {
			continue // another's
		}
		s.client = peer.Addr()
		if !s.knows(peer) {
			if err := s.meet(peer); err != nil {
				s.note(err)
			}
		}
		// Datagrams that came before the client's own socket was there are answered here.
		s.answer(message[:n], from)
	}
}

// answer answers and counts in one go: who has got the answer finds it counted.
func (s *server) answer(message []byte, to unix.Sockaddr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if unix.Sendto(s.listener, message, 0, to) == nil {
		s.gone.transactions++
		s.gone.bytes += 2 * int64(len(message))
	}
}

func (s *server) knows(peer netip.AddrPort) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.sessions {
		if ses.peer == peer {
			return true
		}
	}
	return false
}

// meet opens a socket that is connected to a client: the kernel prefers it for the client's datagrams.
func (s *server) meet(peer netip.AddrPort) error {
	fd, err := open(&s.cfg, peer.Addr())
	if err != nil {
		return err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = bindAndListen(&s.cfg, fd)
	}
	if err == nil {
		err = unix.Connect(fd, sockaddr(peer))
	}
	if err == nil {
		err = s.begin(fd, peer)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open a socket for client %v: %w", peer, err), unix.Close(fd))
	}
	return nil
}

func (s *server) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

// begin starts a loop on a connection, or on the listening socket.
func (s *server) begin(fd int, peer netip.AddrPort) error {
	conns := s.cfg.connections()
	if s.cfg.Kind == StreamRR && conns > 1 {
		// Room for the connections of a client that is gone without closing them.
		conns = min(2*conns, MaxConnections)
	}
	buffer := max(uintptr(s.cfg.Params.Message), flowReplySize)
	if s.cfg.Kind == StreamOut {
		buffer = StreamBuffer
	}
	arena, ctl, err := newControl(s.cfg, conns, buffer, false)
	if err != nil {
		return err
	}
	ctl.listener, ctl.connection[0].fd, ctl.exchange.FD = int32(fd), int32(fd), int64(fd)
	ctl.options.timeout = unix.NsecToTimeval(time.Second.Nanoseconds())
	ctl.domain, ctl.shared = clockDomain(), s.shared
	ses := &session{fd: fd, peer: peer, arena: arena, ctl: ctl}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.sessions) >= maxSessions {
		return errors.Join(fmt.Errorf("%s: more than %d connections", s.cfg.Workload, maxSessions), arena.Free())
	}
	ses.done, err = native.Start(native.Thread{CPU: s.cfg.CPU, Files: []int32{int32(fd)}}, func() { runServer(ctl) })
	if err != nil {
		return errors.Join(err, arena.Free())
	}
	s.sessions[ses] = struct{}{}
	go s.end(ses)
	return nil
}

// end waits for a loop's end and takes its counters over.
func (s *server) end(ses *session) {
	<-ses.done
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone.add(ses.ctl.counted())
	s.spent += ses.ctl.used()
	if o := &ses.ctl.outcome; ses.fd == s.listener && !s.closed && o.step != stepNone {
		s.broken = fmt.Errorf("%s: serve on %v: %v: %w", s.cfg.Workload, s.cfg.Local, o.step, o.errno)
	}
	delete(s.sessions, ses)
	if ses.fd != s.listener {
		s.dropped += dropsOf(ses.fd)
		_ = unix.Close(ses.fd)
	}
	_ = ses.arena.Free()
}

// counted is what a server's loop has done so far; it may be running.
func (c *control) counted() counters {
	answered := atomic.LoadInt64(&c.exchange.Served)
	return counters{
		transactions: atomic.LoadInt64(&c.served.transactions) + answered,
		bytes:        atomic.LoadInt64(&c.served.bytes) + 2*int64(c.message)*answered,
		reordered:    atomic.LoadInt64(&c.served.reordered),
	}
}

// CPU is the processor time that the server's threads have used since it started, those that have ended too: one that serves a
// connection ends with it.
func (s *server) CPU() (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.spent
	for ses := range s.sessions {
		sum += ses.ctl.used()
	}
	return sum, nil
}

// used is the processor time of a server's loop, which may be running.
func (c *control) used() time.Duration {
	if before := atomic.LoadInt64(&c.spent); before < 0 {
		if used, err := procfile.ThreadCPU(int(atomic.LoadInt32(&c.thread))); err == nil {
			return used + time.Duration(before)
		}
	}
	return time.Duration(max(atomic.LoadInt64(&c.spent), 0)) // it has ended, or not begun
}

// Threads are the numbers of the threads that serve now: with a thread for each connection, one for each
// connected client.
func (s *server) Threads() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []int
	for ses := range s.sessions {
		if id := atomic.LoadInt32(&ses.ctl.thread); id != 0 {
			all = append(all, int(id))
		}
	}
	return all
}

// Totals implements Server.
func (s *server) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.gone
	for ses := range s.sessions {
		sum.add(ses.ctl.counted())
	}
	totals := Totals{Transactions: sum.transactions, Bytes: sum.bytes, Reordered: sum.reordered}
	s.describe(&totals)
	return totals
}

// describe adds what the kernel says of the server's sockets, as far as they are known here: where many connections share a
// thread, or each lasts for one request, they are the loop's own.
func (s *server) describe(totals *Totals) {
	if s.closed {
		return
	}
	totals.Sockets = &result.Sockets{}
	var connections []int
	if s.threadPerConnection() {
		for ses := range s.sessions {
			connections = append(connections, ses.fd)
		}
	}
	if s.queue != nil {
		totals.Sockets.Overflows = s.queue.since(s.listener)
		if len(connections) > 0 {
			// A connection that has just ended is none any more; then there is nothing to say.
			totals.TCP, _ = tcpInfo(connections)
		}
		return
	}
	totals.Sockets.Dropped = s.dropped + dropsOf(s.listener)
	for _, fd := range connections {
		totals.Sockets.Dropped += dropsOf(fd)
	}
}

// Close implements Server. It returns what kept the server from serving, if anything did.
func (s *server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	_ = unix.Shutdown(s.listener, unix.SHUT_RDWR)
	var ends []<-chan struct{}
	for ses := range s.sessions {
		atomic.StoreUint32(&ses.ctl.stop, 1)
		_ = unix.Shutdown(ses.fd, unix.SHUT_RDWR)
		ends = append(ends, ses.done)
	}
	s.mu.Unlock()
	timeout := time.After(endTimeout)
	for _, done := range append(ends, s.accepts) {
		select {
		case <-done:
		case <-timeout:
			return fmt.Errorf("%s: a loop of the server on %v did not end within %v", s.cfg.Workload, s.cfg.Local, endTimeout)
		}
	}
	s.settled()
	return errors.Join(s.broken, s.release())
}

// settled waits until all loops' memory is given back: their ends are noted by goroutines of their own.
func (s *server) settled() {
	for {
		s.mu.Lock()
		n := len(s.sessions)
		s.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
