package stalls

import (
	"slices"
	"time"

	"netdelta/result"
)

// point is a burst, or a second of one.
type point struct {
	at, length time.Duration // of the time that it took; since the start of the run
	amount     float64       // transactions or bits that got through
	measured   time.Duration // the time that they took, with what held them up
	kind       Kind
	quiet      bool // not disturbed by anything but the network
	longest    time.Duration
	middle     time.Duration // the median transaction
}

// rate is what got through in a second.
func (p point) rate() float64 {
	if p.measured <= 0 {
		return 0
	}
	return p.amount / p.measured.Seconds()
}

func (p point) stall(usual float64) Stall {
	return Stall{At: p.at, Length: p.length, Level: p.rate(), Of: usual, Kind: p.kind}
}

// pointsOf are the bursts of a trial. Of columns that it lacks, none can be said to have shown a stall.
func pointsOf(b result.Bursts) []point {
	n := min(len(b.Round), len(b.Start), len(b.Duration))
	points := make([]point, 0, n)
	for i := range n {
		p := point{at: time.Duration(b.Start[i]), measured: time.Duration(b.Duration[i]), quiet: true}
		if len(b.Span) > i {
			p.measured = max(p.measured, time.Duration(b.Span[i]))
		}
		p.length = p.measured
		if len(b.Disturbed) > i {
			// Both others are the network's own doing.
			p.quiet = slices.Contains([]string{"", NothingArrived, result.Reconfigured}, b.Disturbed[i])
		}
		switch {
		case len(b.P50) > i && len(b.Transactions) > i:
			p.kind, p.amount, p.middle = Transactions, float64(b.Transactions[i]), time.Duration(b.P50[i])
			if len(b.Max) > i {
				p.longest = time.Duration(b.Max[i])
			}
		case len(b.Throughput) > i:
			p.kind, p.amount = Stream, b.Throughput[i]*time.Duration(b.Duration[i]).Seconds()
		default:
			continue
		}
		points = append(points, p)
	}
	return points
}

const (
	// Seconds are looked at one by one in bursts that are longer than this: of shorter ones a second is but the sum.
	long = 2 * time.Second
	// A point of the series that spans less of its second is too small a sample.
	sample = 0.25
)

// secondsOf are the seconds of a trial whose bursts, its points, are long. The series holds only bursts that were kept.
func secondsOf(t result.Trial, points []point) []point {
	if len(points) == 0 || len(t.Series) == 0 {
		return nil
	}
	// The trial began with its first burst.
	begin := points[0].at
	var lengths []time.Duration
	for _, p := range points {
		lengths = append(lengths, p.measured)
	}
	slices.Sort(lengths)
	if lengths[len(lengths)/2] < long {
		return nil
	}
	var found []point
	for _, s := range t.Series {
		if s.Span < sample {
			continue
		}
		p := point{
			at:       begin + time.Duration(s.At*float64(time.Second)),
			length:   time.Duration(s.Span * float64(time.Second)),
			measured: time.Duration(s.Span * float64(time.Second)),
			kind:     points[0].kind,
			quiet:    true,
		}
		if p.amount = float64(s.Transactions); p.kind == Stream {
			p.amount = 8 * float64(s.Bytes)
		}
		found = append(found, p)
	}
	return found
}
