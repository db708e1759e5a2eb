package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"
)

// meter reads how many bytes have come in at the server's end of the link: the same yardstick for every tool.
type meter struct{ handle *netlink.Handle }

func openMeter(ends *namespaces) (*meter, error) {
	m := &meter{}
	err := ends.server.Do(func() (err error) {
		m.handle, err = netlink.NewHandle()
		return err
	})
	return m, err
}

func (m *meter) close() { m.handle.Close() }

func (m *meter) received() (uint64, time.Time, error) {
	link, err := m.handle.LinkByName(device)
	if err != nil {
		return 0, time.Time{}, err
	}
	stats := link.Attrs().Statistics
	if stats == nil {
		return 0, time.Time{}, fmt.Errorf("the kernel has no counters for %s", device)
	}
	return stats.RxBytes, time.Now(), nil
}

// rate measures for a span, after a fifth of it has passed: bits per second.
func (m *meter) rate(span time.Duration) (float64, error) {
	time.Sleep(span / 5)
	before, begin, err := m.received()
	if err != nil {
		return 0, err
	}
	time.Sleep(span)
	after, end, err := m.received()
	if err != nil {
		return 0, err
	}
	return float64(after-before) * 8 / end.Sub(begin).Seconds(), nil
}

func openIperf3(p *programs, ends *namespaces, flows int, o options) (*frozen, error) {
	_, serverAddr := addresses()
	port := strconv.Itoa(foreignPort)
	return openFrozen(ends, o.cpu, "connected to", 300*time.Millisecond,
		[]string{p.iperf3, "-s", "-p", port, "-1"},
		[]string{p.iperf3, "-c", serverAddr.String(), "-p", port, "-t", "600", "-P", strconv.Itoa(flows), "-C", congestion})
}

// streamTurn is how long a stream is metered in each turn.
const streamTurn = 100 * time.Millisecond

// meterEngine measures a burst of the engine by the meter.
func meterEngine(ctx context.Context, e *own, m *meter) (float64, error) {
	ended := make(chan error, 1)
	go func() {
		_, err := e.burst(ctx, streamTurn*3/2)
		ended <- err
	}()
	rate, err := m.rate(streamTurn)
	if burstErr := <-ended; burstErr != nil {
		return 0, burstErr
	}
	return rate, err
}
