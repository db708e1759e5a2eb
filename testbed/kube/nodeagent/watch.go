package nodeagent

import (
	"bytes"
	"errors"
	"net/netip"
	"sync"
	"time"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/nsmonitor"
)

// watchPause is how long packets wait in the kernel before they are looked through: on a busy node, thousands pass in a
// millisecond, and there is room for as many.
const watchPause = time.Millisecond

// watch samples the packets that concern some addresses.
type watch struct {
	needles [][]byte
	sampler *nsmonitor.Sampler // nil where there is no sample
	lacks   string

	halt   chan struct{}
	ended  sync.WaitGroup
	seen   []testbed.Packet // until ended, of the goroutine alone; so are the others
	missed int
	err    error
}

func newWatch(addresses []netip.Addr, name func(int) string) *watch {
	w := &watch{halt: make(chan struct{})}
	if len(addresses) > 0 {
		w.sampler = nsmonitor.NewSampler(network.Space{}, name)
	}
	for _, a := range addresses {
		w.needles = append(w.needles, a.Unmap().AsSlice())
	}
	return w
}

// start opens the sample, if there is something to look for. Without the right to one, or a kernel that can, there is none, and lacks says why.
func (w *watch) start() error {
	if w.sampler == nil {
		return nil
	}
	err := w.sampler.Open()
	var refused *testbed.PermissionError
	var unsupported *testbed.UnsupportedError
	switch {
	case errors.As(err, &refused):
		w.sampler, w.lacks = nil, refused.Need
	case errors.As(err, &unsupported):
		w.sampler, w.lacks = nil, unsupported.Need
	case err != nil:
		return err
	default:
		w.ended.Go(w.follow)
	}
	return nil
}

// follow looks through packets as they come, until it is told to halt.
func (w *watch) follow() {
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for halted := false; !halted && w.err == nil; {
		select {
		case <-w.halt:
			halted = true // once more, for what has come meanwhile
		case <-tick.C:
		}
		packets, missed, err := w.sampler.Read()
		w.err = err
		w.missed += missed
		for _, p := range packets {
			switch {
			case !concerns(p.Head, w.needles):
			case len(w.seen) == packetsMost:
				w.missed++
			default:
				// Of the others, whose memory it shares, nothing is kept.
				p.Head = bytes.Clone(p.Head)
				w.seen = append(w.seen, p)
			}
		}
	}
}

// stop ends the sample. What was seen is complete then. It is not called twice.
func (w *watch) stop() error {
	close(w.halt)
	w.ended.Wait()
	if w.sampler == nil {
		return nil
	}
	return errors.Join(w.err, w.sampler.Close())
}

// concerns tells whether a packet is between two of the addresses: its head has two of them, or one twice. However it is wrapped,
// addresses stand in it as they are, and packets of others are not looked into.
func concerns(head []byte, addresses [][]byte) bool {
	found := 0
	for _, a := range addresses {
		for at := 0; found < 2; {
			i := bytes.Index(head[at:], a)
			if i < 0 {
				break
			}
			found++
			at += i + len(a)
		}
	}
	return found >= 2
}
