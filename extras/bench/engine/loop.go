package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

//go:embed reference/pingpong.c
var source []byte

// compile makes the reference loop in a folder.
func compile(folder string) (program string, err error) {
	program = filepath.Join(folder, "pingpong")
	if err := os.WriteFile(program+".c", source, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("gcc", "-O2", "-o", program, program+".c").CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the reference loop: %w: %s; install gcc", err, out)
	}
	return program, nil
}

// loop is the reference loop, ready between the ends.
type loop struct {
	server, client testbed.Process
	said           *bufio.Reader
}

func (e *ends) openLoop(ctx context.Context, program, protocol string, size int) (_ *loop, err error) {
	number, to := e.nextPort()
	port, bytes, cpu := strconv.Itoa(int(number)), strconv.Itoa(size), strconv.Itoa(e.cpu)
	l := &loop{}
	if l.server, err = e.Server.Pod().Start(ctx, testbed.Command{Path: program, Args: []string{"server", protocol, port, bytes, cpu}}); err != nil {
		return nil, err
	}
	if protocol == "udp" {
		time.Sleep(200 * time.Millisecond) // there is no connecting that could be tried again
	}
	client := testbed.Command{Path: program, Args: []string{"client", protocol, to.Addr().String(), strconv.Itoa(int(to.Port())), bytes, cpu}}
	if l.client, err = e.Client.Pod().Start(ctx, client); err != nil {
		l.close()
		return nil, err
	}
	l.said = bufio.NewReader(l.client)
	return l, nil
}

func (l *loop) close() {
	for _, p := range []testbed.Process{l.client, l.server} {
		if p != nil {
			_ = errors.Join(p.Kill(), p.Close()) // it was killed
		}
	}
}

func (l *loop) p50(span time.Duration) (float64, error) {
	if _, err := fmt.Fprintln(l.client, span.Seconds()*1e3); err != nil {
		return 0, err
	}
	line, err := l.said.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var count, least, median int64
	if _, err := fmt.Sscan(line, &count, &least, &median); err != nil {
		return 0, fmt.Errorf("the reference loop said %q: %w", line, err)
	}
	return float64(median), nil
}

// againstLoop compares the round trips of netdelta's loop and of the reference loop. In each turn both have a burst, in random order.
func (e *ends) againstLoop(ctx context.Context, o options, program, protocol string, s *sheet) error {
	session, err := e.connect(ctx, protocol+"-rr", result.Params{Message: unit.Bytes(o.size)})
	if err != nil {
		return err
	}
	reference, err := e.openLoop(ctx, program, protocol, o.size)
	if err != nil {
		return err
	}
	defer reference.close()
	for range o.turns {
		var medians [2]float64
		for _, i := range rand.Perm(len(medians)) {
			if i == 0 {
				b, err := e.burst(ctx, session, o.burst)
				if err != nil {
					return err
				}
				medians[i] = b.P50
			} else if medians[i], err = reference.p50(o.burst); err != nil {
				return err
			}
		}
		s.add(loopName(protocol), medians[0], medians[1])
	}
	return nil
}
