package block

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// Health implements workload.DaemonServer: the server is well when it greets.
func (s *nbdDaemon) Health(ctx context.Context) workload.Health {
	h := workload.Health{Services: []result.Service{{Name: nbdServer, Version: s.version}}}
	processes, err := s.processes()
	for _, p := range processes {
		if stat, err := p.Stat(); err == nil { // a process of a connection may end meanwhile
			h.Services[0].Memory += unit.Bytes(stat.ResidentMemory())
		}
	}
	if err == nil {
		err = greet(ctx, s.near())
	}
	if err != nil {
		// Processes of connections outlive the one that listens.
		h.Unwell, h.Ended = err.Error(), errors.Is(err, errEnded) || errors.Is(err, syscall.ECONNREFUSED)
	}
	return h
}

// errEnded is matched by the error of a server that does not run any more.
var errEnded = errors.New("nbd-server has ended; what it had to say went to the system's log")

// processes are the server's: one that listens, and one for each connection. The error matches errEnded if there is none.
func (s *nbdDaemon) processes() ([]procfs.Proc, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("look for nbd-server: %w", err)
	}
	mine := slices.DeleteFunc(all, func(p procfs.Proc) bool {
		line, err := p.CmdLine()
		return err != nil || !slices.Contains(line, s.mark())
	})
	if len(mine) == 0 {
		return nil, errEnded
	}
	return mine, nil
}

// greetPatience is how long a server may take to greet before it is taken to hang. It takes microseconds, on a busy machine
// milliseconds.
const greetPatience = 3 * time.Second

// Restart implements workload.DaemonServer.
func (s *nbdDaemon) Restart(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	if greet(patient, s.near()) == nil {
		return nil
	}
	processes, err := s.processes()
	if err != nil && !errors.Is(err, errEnded) {
		return err
	}
	for _, p := range processes {
		// What is left of it: processes of connections whose other end is gone, or one that hangs.
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end what is left of nbd-server, process %d: %w", p.PID, err)
		}
	}
	// A process that was killed has the port until its end is over.
	vacated, cancelVacated := context.WithTimeout(ctx, startPatience)
	defer cancelVacated()
	err = daemon.Until(vacated, nil, 10*time.Millisecond, func(ctx context.Context) error {
		err := daemon.PortFree(ctx, s.listen)
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			return daemon.FinalError{Err: err}
		}
		return err
	})
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return fmt.Errorf("block: nbd-server at %s: %w", s.listen, err)
	}
	return nil
}
