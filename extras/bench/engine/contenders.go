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

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/result"
	"netdelta/unit"
)

// The ports of the servers; each contender has its own, so that all can be ready at once.
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
	folder, pingpong string
	sockperf, iperf3 string // "" when missing
}

func prepare() (*programs, error) {
	folder, err := os.MkdirTemp("", "netdelta-bench-")
	if err != nil {
		return nil, err
	}
	p := &programs{folder: folder, pingpong: filepath.Join(folder, "pingpong")}
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

// own is one of this project's workloads, ready in a pair of namespaces.
type own struct {
	harness.Pair
	session int
}

func openEngine(ctx context.Context, ends *namespaces, name string, params result.Params, cpu int) (e *own, err error) {
	clientAddr, serverAddr := addresses()
	e = &own{}
	if e.Pair, err = harness.Start(ctx, pod{"client", ends.client, clientAddr}, pod{"server", ends.server, serverAddr}, nil); err != nil {
		return nil, err
	}
	listen := netip.AddrPortFrom(serverAddr, serverPort)
	e.session, _, err = e.Connect(ctx, name, params, harness.Link{Listen: listen, From: netip.AddrPortFrom(clientAddr, clientPort), To: listen}, cpu)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *own) burst(ctx context.Context, span time.Duration) (engine.Burst, error) {
	return e.Client.Burst(ctx, e.session, engine.BurstSpec{Duration: span, Warmup: span / 50, Deadline: span + 10*time.Second})
}

func (e *own) p50(ctx context.Context, span time.Duration) (float64, error) {
	b, err := e.burst(ctx, span)
	return b.P50, err
}

// loop is the reference loop, ready likewise.
type loop struct {
	programPair
	in  io.WriteCloser
	out *bufio.Reader
}

func openLoop(p *programs, ends *namespaces, protocol string, size, cpu int) (*loop, error) {
	_, serverAddr := addresses()
	port, bytes, at := strconv.Itoa(loopPort), strconv.Itoa(size), strconv.Itoa(cpu)
	l := &loop{programPair: programPair{
		server: exec.Command(p.pingpong, "server", protocol, port, bytes, at),
		client: exec.Command(p.pingpong, "client", protocol, serverAddr.String(), port, bytes, at),
	}}
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

func paramsOf(protocol string, size int) result.Params {
	p := result.Params{Message: unit.Bytes(size)}
	if protocol == "tcp" {
		p.CongestionControl = congestion
	}
	return p
}
