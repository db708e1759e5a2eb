package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// calm is how long a service that ended by itself stays ended, so that one that can't run does not keep the processors busy.
	calm = time.Second
	// graceful is how long a service may take to end when it is asked to.
	graceful = 10 * time.Second
)

// service is a Service that runs, or is about to run again.
type service struct {
	quit chan struct{} // closed when it shall not run again
	done chan struct{} // closed when it has ended for good

	mu  sync.Mutex
	pid int // 0 while it does not run
}

// run starts a service and starts it again when it ends, until it is stopped. The error is that of the first start.
func run(c *children, spec Service) (*service, error) {
	log, err := os.OpenFile(filepath.Join(LogFolder, spec.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	pid, ended, err := c.start(spec.Args, spec.Env, log)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	s := &service{quit: make(chan struct{}), done: make(chan struct{}), pid: pid}
	go s.keep(c, spec, log, ended)
	return s, nil
}

// keep starts the service again whenever it has ended.
func (s *service) keep(c *children, spec Service, log *os.File, ended <-chan syscall.WaitStatus) {
	defer close(s.done)
	defer func() { _ = log.Close() }()
	for {
		if ended != nil {
			status := <-ended
			s.set(0)
			fmt.Fprintf(log, "--- %s ended: exit status %d, signal %d\n", spec.Name, status.ExitStatus(), status.Signal())
		}
		select {
		case <-s.quit:
			return
		case <-time.After(calm):
		}
		pid, again, err := c.start(spec.Args, spec.Env, log)
		if err != nil {
			fmt.Fprintf(log, "--- %v\n", err)
			ended = nil
			continue
		}
		ended = again
		s.set(pid)
	}
}

func (s *service) set(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pid = pid
}

// signal sends a signal to the service, if it runs.
func (s *service) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pid > 0 {
		_ = unix.Kill(s.pid, sig) // it may have ended this moment
	}
}

// stop ends the service for good: it is asked to, unless now is true, and killed when it takes too long.
func (s *service) stop(now bool) {
	close(s.quit)
	if !now {
		s.signal(unix.SIGTERM)
		select {
		case <-s.done:
			return
		case <-time.After(graceful):
		}
	}
	// A service that was started this moment, after quit was looked at, is met by a later turn.
	for {
		s.signal(unix.SIGKILL)
		select {
		case <-s.done:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
