package http

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/procfile"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool"
)

const nginxProgram = "nginx"

// wholeFile is the largest file whose bytes are all there. A larger one is a hole: it takes no memory, and is read as zeros.
const wholeFile = 16 * unit.MiB

// room is what the server's home has to hold: the file, configuration, a log and a few folders.
func room(p result.Params) unit.Bytes {
	if p.File > wholeFile {
		return 2 * unit.MiB
	}
	return p.File + 2*unit.MiB
}

// nginxMemory is what nginx takes at most.
func nginxMemory(p result.Params) unit.Bytes {
	return 16*unit.MiB + unit.Bytes(p.Connections)*32*unit.KiB
}

// nginx is a server that runs.
type nginx struct {
	params  result.Params
	listen  netip.AddrPort
	cpu     int
	home    *daemon.Sandbox
	version string
	status  bool // it tells how many requests it has answered

	mu       sync.Mutex
	daemon   *daemon.Daemon
	answered int64 // requests, by those that have ended
	closed   bool
}

// serve starts nginx, and returns when it listens.
func serve(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (_ engine.Server, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("http: nginx at %v: %w", listen, err)
		}
	}()
	// nginx would try for seconds, and then say it in its log.
	if err := daemon.PortFree(ctx, listen); err != nil {
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("%w: another server has this port; choose another port or end that server", err)
		}
		return nil, err
	}
	build, err := askNginx(ctx)
	if err != nil {
		return nil, err
	}
	s := &nginx{params: p, listen: listen, cpu: cpu, version: build.version, status: build.has("with-http_stub_status_module")}
	if s.home, err = daemon.Open(room(p)); err != nil {
		return nil, err
	}
	if err = s.writeFiles(build); err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.home.Close())
	}
	return s, nil
}

// build is how nginx was built.
type build struct {
	version   string
	arguments string
}

// has says whether an argument was given when nginx was built.
func (b build) has(argument string) bool { return strings.Contains(b.arguments, "--"+argument) }

// nginxLeast is the oldest version that knows what we ask of it: keepalive_time came with it.
const nginxLeast = "1.19.10"

// askNginx asks the nginx that is installed how it was built.
func askNginx(ctx context.Context) (build, error) {
	path, err := daemon.Look(nginxProgram)
	if err != nil {
		return build{}, fmt.Errorf("%w: install the package nginx-light", err)
	}
	said, err := exec.CommandContext(ctx, path, "-V").CombinedOutput()
	if err != nil {
		return build{}, fmt.Errorf("ask %s for its version: %w: %.200s", path, err, said)
	}
	version := regexp.MustCompile(`nginx version: \S*/(\d+\.\d+\.\d+)`).FindSubmatch(said)
	if version == nil {
		return build{}, fmt.Errorf("ask %s for its version: it says %.200q", path, said)
	}
	b := build{version: string(version[1]), arguments: string(said)}
	if tool.Older(b.version, nginxLeast) {
		return b, fmt.Errorf("%s is version %s, which is too old: it takes %s or later", path, b.version, nginxLeast)
	}
	return b, nil
}

// Places in the server's home.
const (
	configFile   = "nginx.conf"
	errorLog     = "error.log"
	pidFile      = "nginx.pid"
	filesFolder  = "files"
	tempFolder   = "temp"
	statusSocket = "status.sock"
)

// writeFiles writes what nginx needs: its configuration and the file that it serves.
func (s *nginx) writeFiles(b build) error {
	if err := s.home.Write(configFile, []byte(config(s.params, s.listen, b, s.home.Path)), 0o644, ""); err != nil {
		return err
	}
	for _, folder := range []string{filesFolder, tempFolder} {
		if err := s.home.Folder(folder, ""); err != nil {
			return err
		}
	}
	name := filepath.Join(filesFolder, fileName(s.params))
	if s.params.File <= wholeFile {
		body := make([]byte, s.params.File)
		for i := range body {
			body[i] = byte(i*31 + 7) // anything but zeros
		}
		return s.home.Write(name, body, 0o644, "")
	}
	if err := s.home.Write(name, nil, 0o644, ""); err != nil {
		return err
	}
	return s.home.Do(func() error { return os.Truncate(s.home.Path(name), int64(s.params.File)) })
}

//go:embed nginx.conf
var configText string

// config is nginx's configuration: one process that serves one file, from memory, and that never closes a connection which the
// client would keep.
func config(p result.Params, listen netip.AddrPort, b build, in func(name ...string) string) string {
	var temp strings.Builder
	// What it is built with wants a folder, used or not, and would take one of the machine's.
	for _, module := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		if !b.has("without-http_" + module + "_module") {
			fmt.Fprintf(&temp, "\t%s_temp_path %s;\n", module, in(filepath.Join(tempFolder, module)))
		}
	}
	status := "return 204;"
	if b.has("with-http_stub_status_module") {
		status = "stub_status;"
	}
	return strings.NewReplacer("{pid}", in(pidFile), "{log}", in(errorLog), "{sockets}", strconv.Itoa(sockets(p)), "{temp}", temp.String(),
		"{listen}", listen.String(), "{files}", in(filesFolder), "{socket}", in(statusSocket), "{status}", status).Replace(configText)
}

// start starts nginx, and returns when it listens.
func (s *nginx) start(ctx context.Context) error {
	err := s.home.Do(func() error {
		for _, left := range []string{pidFile, statusSocket} { // by one that was killed
			if err := os.Remove(s.home.Path(left)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	d, err := s.home.Start(daemon.Spec{
		Path: nginxProgram,
		Args: []string{"-p", s.home.Path(), "-c", s.home.Path(configFile), "-e", s.home.Path(errorLog)},
		CPUs: daemon.Pin(s.cpu), Log: errorLog,
	})
	if err != nil {
		return err
	}
	s.daemon = d
	if err := allowFiles(d.PID(), sockets(s.params)); err != nil {
		return errors.Join(err, d.Kill())
	}
	// It writes the file when it listens.
	there := func() error {
		text, err := os.ReadFile(s.home.Path(pidFile))
		if err == nil && len(text) == 0 {
			return os.ErrNotExist // not yet written
		}
		return err
	}
	err = daemon.Until(ctx, d, 2*time.Millisecond, func(context.Context) error { return s.home.Do(there) })
	if ended := d.Err(); ended != nil {
		return s.explain(ended)
	}
	if err != nil {
		return errors.Join(err, d.Kill())
	}
	return nil
}

// sockets is how many nginx may have open: the clients', another client's that comes while they still close, and a few.
func sockets(p result.Params) int { return 2*p.Connections + 64 }

// allowFiles lets a process have so many files open, as far as this process may.
func allowFiles(pid, files int) error {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit); err != nil {
		return fmt.Errorf("ask how many files it may open: %w", err)
	}
	want := uint64(files) + 64
	if limit.Cur >= want {
		return nil
	}
	limit.Cur = min(want, limit.Max)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		return fmt.Errorf("let it open %d files: %w", want, err)
	}
	return nil
}

// explain gives what nginx's log says of a port in use the form of an error of the kernel.
func (s *nginx) explain(err error) error {
	if err != nil && strings.Contains(err.Error(), "("+strconv.Itoa(int(unix.EADDRINUSE))+": ") {
		return fmt.Errorf("%w: another server has this port; choose another port or end that server: %w", unix.EADDRINUSE, err)
	}
	return err
}

// Close implements engine.Server.
func (s *nginx) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.answered += s.requests(context.Background())
	s.closed = true
	return s.home.Close()
}

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

// CPU is the processor time of nginx's one process.
func (s *nginx) CPU() (time.Duration, error) { return procfile.FamilyCPU(s.Threads()) }

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
