package path

import (
	"fmt"
	"math"

	"netdelta/network"
	"netdelta/testbed"
)

// Reading is what the kernel had counted at one moment.
type Reading struct {
	Counters map[network.Device]testbed.Counters
	Stacks   map[network.Space]testbed.Stack
}

// change is what a device counted between two readings.
type change struct {
	sent, received traffic
	// lost says why the change is not known, "" if it is: the device "vanished", "was made anew", "is not there".
	lost string
	// wrapped says that a counter went past its end and was corrected.
	wrapped bool
}

// traffic is what a device carried in one direction.
type traffic struct{ packets, bytes uint64 }

func (t traffic) plus(o traffic) traffic { return traffic{t.packets + o.packets, t.bytes + o.bytes} }

// both are the ones of both directions.
func (c change) both() traffic { return c.sent.plus(c.received) }

// of is the direction that sends, or the one that receives.
func (c change) of(sends bool) traffic {
	if sends {
		return c.sent
	}
	return c.received
}

// changes holds two readings against each other, device by device.
func changes(before, after map[network.Device]testbed.Counters) map[network.Device]change {
	all := map[network.Device]change{}
	for d, b := range before {
		a, there := after[d]
		if !there {
			all[d] = change{lost: "vanished"}
			continue
		}
		all[d] = changeOf(b, a)
	}
	for d, a := range after {
		if _, there := before[d]; !there {
			c := changeOf(testbed.Counters{Index: a.Index}, a) // it began at zero
			c.lost = "was made"
			all[d] = c
		}
	}
	return all
}

// changeOf is what a device counted between two readings. Some drivers count in 32 bits: a counter that fell from the upper
// half of that range is taken to have wrapped, any other fall shows that the device began anew.
func changeOf(before, after testbed.Counters) change {
	if before.Index != after.Index {
		return change{lost: "was made anew"}
	}
	var c change
	restarted := false
	for _, v := range []struct {
		before, after uint64
		into          *uint64
	}{
		{before.SentPackets, after.SentPackets, &c.sent.packets}, {before.SentBytes, after.SentBytes, &c.sent.bytes},
		{before.ReceivedPackets, after.ReceivedPackets, &c.received.packets},
		{before.ReceivedBytes, after.ReceivedBytes, &c.received.bytes},
	} {
		const end, half = math.MaxUint32 + 1, (math.MaxUint32 + 1) / 2
		switch {
		case v.after >= v.before:
			*v.into = v.after - v.before
		case v.before >= half && v.before < end && v.after < half:
			*v.into, c.wrapped = end-v.before+v.after, true
		default:
			restarted = true
		}
	}
	if restarted {
		return change{lost: "was made anew, or its counters were set back,"}
	}
	return c
}

// loss is the sentence about a device whose change is not known.
func (c change) loss(d network.Device) string {
	return fmt.Sprintf("%s %s while it was watched", d, c.lost)
}

// correction is the sentence about a counter that wrapped.
func (c change) correction(d network.Device) string {
	return fmt.Sprintf("%s counts in 32 bits and went past its end while it was watched: corrected", d)
}
