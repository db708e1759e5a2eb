package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/result"
	"netdelta/unit"
)

// The ports of the servers; each contender has its own, so that all can be armed at once.
const (
	serverPort  = 7001
	clientPort  = 10001
	loopPort    = 7002
	foreignPort = 7003
)

//go:embed reference/pingpong.c
var reference []byte

// programs are those that the engines are compared with.
type programs struct {
	folder, self, pingpong string
	sockperf, iperf3       string // "" when missing
}

func prepare() (*programs, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "netdelta-bench-")
	if err != nil {
		return nil, err
	}
	p := &programs{folder: folder, self: self, pingpong: filepath.Join(folder, "pingpong")}
	source := p.pingpong + ".c"
	if err := os.WriteFile(source, reference, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command("gcc", "-O2", "-o", p.pingpong, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the reference loop: %w: %s; install gcc", err, out)
	}
	p.sockperf, _ = exec.LookPath("sockperf")
	p.iperf3, _ = exec.LookPath("iperf3")
	return p, nil
}

// own is one of this project's workloads, armed in a pair of namespaces.
type own struct {
	client, server *agent.Agent
	session        int
}

func openEngine(ctx context.Context, p *programs, ends *pair, name string, params result.Params, cpu int) (e *own, err error) {
	clientAddr, serverAddr := addresses()
	program := agent.Program{Path: p.self}
	e = &own{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.server, err = agent.Start(ctx, pod{"server", ends.server, serverAddr}, program); err != nil {
		return e, err
	}
	if e.client, err = agent.Start(ctx, pod{"client", ends.client, clientAddr}, program); err != nil {
		return e, err
	}
	listen := netip.AddrPortFrom(serverAddr, serverPort)
	if _, err = e.server.Serve(ctx, name, params, listen, cpu); err != nil {
		return e, err
	}
	e.session, err = e.client.Dial(ctx, name, params, netip.AddrPortFrom(clientAddr, clientPort), listen, cpu)
	return e, err
}

func (e *own) burst(ctx context.Context, span time.Duration) (engine.Burst, error) {
	return e.client.Burst(ctx, e.session, engine.BurstSpec{Duration: span, Warmup: span / 50, Deadline: span + 10*time.Second})
}

func (e *own) p50(ctx context.Context, span time.Duration) (float64, error) {
	b, err := e.burst(ctx, span)
	return b.P50, err
}

func (e *own) close() error {
	var errs []error
	for _, a := range []*agent.Agent{e.client, e.server} {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	return errors.Join(errs...)
}

// loop is the reference loop, armed likewise.
type loop struct {
	client, server *exec.Cmd
	in             io.WriteCloser
	out            *bufio.Reader
}

func openLoop(p *programs, ends *pair, protocol string, size, cpu int) (*loop, error) {
	_, serverAddr := addresses()
	port, bytes, at := strconv.Itoa(loopPort), strconv.Itoa(size), strconv.Itoa(cpu)
	l := &loop{
		server: exec.Command(p.pingpong, "server", protocol, port, bytes, at),
		client: exec.Command(p.pingpong, "client", protocol, serverAddr.String(), port, bytes, at),
	}
	l.client.Stderr, l.server.Stderr = os.Stderr, os.Stderr
	if err := start(ends.server, l.server); err != nil {
		return nil, err
	}
	in, err := l.client.StdinPipe()
	if err != nil {
		l.close()
		return nil, err
	}
	out, err := l.client.StdoutPipe()
	if err != nil {
		l.close()
		return nil, err
	}
	l.in, l.out = in, bufio.NewReader(out)
	if protocol == "udp" {
		time.Sleep(200 * time.Millisecond) // there is no connecting that could be tried again
	}
	if err := start(ends.client, l.client); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *loop) p50(_ context.Context, span time.Duration) (float64, error) {
	if _, err := fmt.Fprintln(l.in, span.Seconds()*1e3); err != nil {
		return 0, err
	}
	line, err := l.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var count, least, median int64
	if _, err := fmt.Sscan(line, &count, &least, &median); err != nil {
		return 0, fmt.Errorf("the reference loop said %q: %w", line, err)
	}
	return float64(median), nil
}

func (l *loop) close() {
	for _, cmd := range []*exec.Cmd{l.client, l.server} {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	}
}

func paramsOf(protocol string, size int) result.Params {
	p := result.Params{Message: unit.Bytes(size)}
	if protocol == "tcp" {
		p.CongestionControl = congestion
	}
	return p
}
