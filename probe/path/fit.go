package path

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// Fit is what was found out of the path's MTU: a packet as large as the plan promises must arrive whole, and one that is a
// byte larger must be refused by its sender.
type Fit struct {
	// Largest is the largest IP packet that was seen to arrive whole, 0 if none was.
	Largest  unit.Bytes
	Findings []string
	// Lacks says why it was not tried: "a packet sample".
	Lacks string
}

const (
	// fitPatience is how long a packet may take to arrive; usually it is there when the call that sends it returns.
	fitPatience = 300 * time.Millisecond
	fitPause    = 100 * time.Microsecond
	// fitAttempts is how often a packet is sent: one that a node on the way refuses leaves its sender with the right MTU,
	// and so does the next refusal for the way behind that.
	fitAttempts = 3
)

// fitting tries what fits the way from one pod to another.
type fitting struct {
	o        testbed.Observer
	tap      testbed.Tap
	from, to testbed.Pod
	way      []network.Hop
	decoder  decoder
	found    Fit
}

// try finds the path's MTU. What the network does wrong is a finding, not an error.
func (f *fitting) try(ctx context.Context, promised unit.Bytes) (Fit, error) {
	size := min(promised, largestPacket(f.to.Address()))
	for range fitAttempts {
		err := f.o.Fit(ctx, f.from, f.to, size)
		if tooLarge, is := errors.AsType[*testbed.TooLargeError](err); is {
			f.find("%s refused to send a packet of %d bytes to %s: it takes the path's MTU to be %d; the plan says %d",
				f.from.Name(), int64(size), f.to.Name(), int64(tooLarge.MTU), int64(promised))
			if tooLarge.MTU <= 0 || tooLarge.MTU >= size {
				return f.found, nil
			}
			size = tooLarge.MTU
			continue
		}
		if err != nil {
			f.find("a packet of %d bytes could not be sent: %v", int64(size), err)
			return f.found, ctx.Err()
		}
		arrived, err := f.reaches(ctx, size)
		if err != nil {
			return f.found, err
		}
		if arrived {
			f.found.Largest = size
			return f.found, f.tryMore(ctx, size, promised)
		}
		f.find("a packet of %d bytes from %s did not reach %s whole; the plan's MTU is %d", int64(size), f.from.Name(), f.to.Name(), int64(promised))
	}
	return f.found, nil
}

// tryMore has a packet refused that is a byte too large.
func (f *fitting) tryMore(ctx context.Context, size, promised unit.Bytes) error {
	if size != promised || size >= largestPacket(f.to.Address()) {
		return nil
	}
	err := f.o.Fit(ctx, f.from, f.to, size+1)
	if _, is := errors.AsType[*testbed.TooLargeError](err); is {
		return nil
	}
	if err == nil {
		f.find("a packet of %d bytes from %s to %s was not refused; the plan's MTU is %d", int64(size+1), f.from.Name(), f.to.Name(), int64(promised))
	} else {
		f.find("a packet of %d bytes could not be sent: %v", int64(size+1), err)
	}
	return ctx.Err()
}

// find notes a finding, once.
func (f *fitting) find(format string, args ...any) {
	if says := fmt.Sprintf(format, args...); !slices.Contains(f.found.Findings, says) {
		f.found.Findings = append(f.found.Findings, says)
	}
}

// unlucky is how likely it may be that links which lose packets lose each of those that are sent in turn.
const unlucky = 1e-6

// sendings is how often a packet has to be sent over links that lose a share of all in order that one arrives.
func sendings(loss float64) int {
	if loss <= 0 {
		return 1
	}
	return int(math.Ceil(math.Log(unlucky) / math.Log(loss)))
}

// reaches waits for a packet that was sent, and sends it again where links lose some.
func (f *fitting) reaches(ctx context.Context, size unit.Bytes) (bool, error) {
	for left := sendings(f.o.Spec().Conditions.LinkLoss); ; {
		arrived, err := f.arrives(ctx, size)
		if left--; arrived || err != nil || left == 0 {
			return arrived, err
		}
		if err := f.o.Fit(ctx, f.from, f.to, size); err != nil {
			return false, err
		}
	}
}

// arrives waits for a packet at the far end.
func (f *fitting) arrives(ctx context.Context, size unit.Bytes) (bool, error) {
	for deadline := time.Now().Add(fitPatience + f.o.Spec().Conditions.LinkDelay); ; time.Sleep(fitPause) {
		seen, _, err := f.tap.Packets()
		if err != nil {
			return false, err
		}
		if f.looksAt(seen, size) {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
	}
}

// looksAt looks for the packet on the last device of the way, and for fragments on all others.
func (f *fitting) looksAt(seen []testbed.Packet, size unit.Bytes) bool {
	_, port := f.to.Ports()
	end := f.way[len(f.way)-1].Device
	arrived := false
	for _, p := range seen {
		frame := f.decoder.packet(p)
		if frame.fragment() {
			f.find("a packet of %d bytes from %s to %s, which the plan says fits, was cut into IP fragments on %s",
				int64(size), f.from.Name(), f.to.Name(), p.Device)
		}
		for _, l := range frame.layer[:frame.depth] {
			if p.Device == end && l.protocol == network.UDP && l.destination.Port() == port && l.size == size && !l.fragment {
				arrived = true
			}
		}
	}
	return arrived
}

// largestPacket is the largest IP packet to an address that can carry a datagram: the whole of an IPv4 packet, but only what comes
// after the header of an IPv6 packet, is counted in 16 bits.
func largestPacket(to netip.Addr) unit.Bytes {
	const counted = 65535
	if to.Is6() {
		return counted + ipv6Header
	}
	return counted
}
