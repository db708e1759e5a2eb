package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/reaper"
)

const (
	// calm is how long a service that ended by itself stays ended, so that one that can't run does not keep the processors busy.
	calm = time.Second
	// graceful is how long a service may take to end when it is asked to.
	graceful = 10 * time.Second
)

// service is a Service that runs, or is about to run again.
type service struct {
	reaper *reaper.Reaper
	spec   Service
	log    *os.File
	quit   chan struct{} // closed when it shall not run again
	done   chan struct{} // closed when it has ended for good

	mu  sync.Mutex
	cmd *exec.Cmd // nil while it does not run
}

// run starts a service and starts it again when it ends, until it is stopped. It returns the error of the first start.
func run(r *reaper.Reaper, spec Service) (*service, error) {
	log, err := os.OpenFile(filepath.Join(LogFolder, spec.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	s := &service{reaper: r, spec: spec, log: log, quit: make(chan struct{}), done: make(chan struct{})}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go s.keep()
	return s, nil
}

func (s *service) start() error {
	cmd := command(s.spec.Args, s.spec.Env, s.log)
	err := s.reaper.Start(cmd)
	if err == nil {
		s.set(cmd)
	}
	return err
}

// keep starts the service again whenever it has ended.
func (s *service) keep() {
	defer close(s.done)
	defer func() { _ = s.log.Close() }()
	for {
		if cmd := s.cmd; cmd != nil { // it is set by this goroutine
			_ = s.reaper.Wait(cmd) // how it ended is in its state
			s.set(nil)
			fmt.Fprintf(s.log, "--- %s ended: %v\n", s.spec.Name, cmd.ProcessState)
		}
		select {
		case <-s.quit:
			return
		case <-time.After(calm):
		}
		if err := s.start(); err != nil {
			fmt.Fprintf(s.log, "--- %v\n", err)
		}
	}
}

func (s *service) set(cmd *exec.Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = cmd
}

// signal sends a signal to the service, if it runs.
func (s *service) signal(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig) // it may have ended this moment
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
