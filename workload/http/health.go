package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/workload"
)

var _ workload.DaemonServer = (*nginx)(nil)

// statusPatience is how long nginx may take to answer when the caller sets no limit.
const statusPatience = 5 * time.Second

// ask has nginx say how it is, on a socket that no network is in the way to.
func (s *nginx) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	var c net.Conn
	err := s.home.Do(func() (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, "unix", s.home.Path(statusSocket))
		return err
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if until, there := ctx.Deadline(); there {
		if err := c.SetDeadline(until); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: status\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// requests is how many requests nginx has answered since it started; 0 where it doesn't say.
func (s *nginx) requests(ctx context.Context) int64 {
	if !s.status {
		return 0
	}
	answer, err := s.ask(ctx)
	if err != nil {
		return 0
	}
	// The line after the words has those accepted, handled and asked for.
	figures := regexp.MustCompile(`requests\s*\n\s*\d+ \d+ (\d+)`).FindStringSubmatch(answer)
	if figures == nil {
		return 0
	}
	n, err := strconv.ParseInt(figures[1], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Totals implements engine.Server: the requests that nginx has answered.
func (s *nginx) Totals() engine.Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := engine.Totals{Transactions: s.answered}
	if !s.closed {
		t.Transactions += s.requests(context.Background())
	}
	return t
}

// Threads is the number of nginx's one process.
func (s *nginx) Threads() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.daemon.Err() != nil {
		return nil
	}
	return []int{s.daemon.PID()}
}

// Health implements workload.DaemonServer: nginx is well when it answers.
func (s *nginx) Health(ctx context.Context) workload.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := workload.Health{Services: []result.Service{{Name: nginxProgram, Version: s.version, Memory: s.daemon.Memory()}}}
	if err := s.daemon.Err(); err != nil {
		h.Unwell, h.Ended = err.Error(), true
		return h
	}
	if _, err := s.ask(ctx); err != nil {
		h.Unwell = fmt.Sprintf("nginx does not answer: %v; its log: %s", err, s.daemon.Log())
	}
	return h
}

// Restart implements workload.DaemonServer.
func (s *nginx) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("http: nginx at %v: %w", s.listen, daemon.ErrClosed)
	}
	if s.daemon.Err() == nil {
		if _, err := s.ask(ctx); err == nil {
			return nil
		}
	}
	// One that does not answer would keep the port.
	if err := errors.Join(s.daemon.Kill(), s.start(ctx)); err != nil {
		return fmt.Errorf("http: nginx at %v: %w", s.listen, err)
	}
	return nil
}
