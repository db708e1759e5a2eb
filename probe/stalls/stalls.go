// Package stalls finds the times at which a network let nothing through, or next to nothing: what an average hides, and a
// median even more. It looks at the trial's own figures, burst by burst and, in bursts of seconds, second by second. It is
// pure: a trial in, stalls out.
//
// Three things are stalls:
//
//   - bursts or seconds in which nothing arrived, or in which the rate of transactions (or, of a stream, of bits) was below a
//     tenth of the trial's median for 100 ms or more. The rate counts over all the time that a burst took, with its warm-up and the wait for its end, since a network
//     that hangs does so anywhere, and keeps a burst of 5 ms from ending for as long as it hangs.
//   - a single transaction that took far longer than the others (100 ms or more), in a burst that is otherwise fine.
//   - a burst that took that much longer than the trial's others, though its measured part shows nothing.
//
// A burst that something else than the network has disturbed is no stall, unless nothing at all arrived in it, which a busy
// machine does not explain as long as other bursts get through.
package stalls

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Stall is a time in which a network let through next to nothing.
type Stall struct {
	// At is when it began, since the start of the run: the stalls of several trials can be laid side by side.
	At time.Duration
	// Length is how long it lasted; where a single transaction hung, how long the burst did that it hung in.
	Length time.Duration
	// Level is what got through meanwhile, and Of the median of the trial: transactions or, of a stream, bits per second.
	// Where a single transaction hung, both are seconds: its time, and the median one's; where a burst of a stream did, Level is how much
	// longer it took than the median one, and Of zero. Of is also zero when nothing ever arrived.
	Level, Of float64
	Kind      Kind
}

// Kind is what a stall is of.
type Kind string

// The kinds.
const (
	Transactions Kind = "transactions" // too few of them
	Stream       Kind = "stream"       // too few bits
	Hang         Kind = "hang"         // of one transaction
)

// String is the stall as a sentence without its full stop.
func (s Stall) String() string {
	what := ""
	switch s.Kind {
	case Hang:
		if s.Of == 0 {
			return fmt.Sprintf("a burst took %s longer than the median one, from %s to %s", unit.Duration(seconds(s.Level)), second(s.At), second(s.At+s.Length))
		}
		return fmt.Sprintf("a transaction took %s between %s and %s (median %s)",
			unit.Duration(seconds(s.Level)), second(s.At), second(s.At+s.Length), unit.Duration(seconds(s.Of)))
	case Stream:
		what = unit.BitsPerSecond(s.Level).String()
		if s.Level == 0 {
			what = "0 bytes"
		}
	case Transactions:
		what = perSecond(s.Level)
		if s.Level == 0 {
			what = "0 transactions"
		}
	}
	usual := perSecond(s.Of)
	if s.Kind == Stream {
		usual = unit.BitsPerSecond(s.Of).String()
	}
	if s.Of == 0 {
		return fmt.Sprintf("%s from %s to %s, all that was measured", what, second(s.At), second(s.At+s.Length))
	}
	return fmt.Sprintf("%s from %s to %s (median %s)", what, second(s.At), second(s.At+s.Length), usual)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// second is a moment of the run.
func second(at time.Duration) string {
	return strconv.FormatFloat(at.Seconds(), 'f', 2, 64) + " s"
}

// perSecond is a rate of transactions, with a comma at every third digit.
func perSecond(rate float64) string {
	if rate < 10 {
		return strconv.FormatFloat(rate, 'g', 2, 64) + "/s"
	}
	digits := strconv.FormatFloat(rate, 'f', 0, 64)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String() + "/s"
}

// NothingArrived is why a burst is kept out of deltas in which nothing arrived: it has no latency and no rate to compare.
// Such a burst is never taken for a disturbance of the machine.
const NothingArrived = "nothing-arrived"

// Rules say what a stall is.
type Rules struct {
	// Below is the share of the median under which a rate has collapsed: 0 to 1.
	Below float64
	// Shortest is how long a stall lasts at least in which something arrived: less is a tail, and tails have their
	// percentiles. It is also how long a transaction takes at least that hung.
	Shortest time.Duration
	// Outlier is how many times the median transaction's time one takes at least that hung.
	Outlier float64
}

// Usual are the rules of Find.
func Usual() Rules { return Rules{Below: 0.1, Shortest: 100 * time.Millisecond, Outlier: 20} }

// Find finds the stalls of a trial, in the order of time, by the usual rules.
func Find(t result.Trial) []Stall { return Usual().Find(t) }

// Find finds the stalls of a trial, in the order of time. A trial that searched for the highest rate has none: it overloads
// the network on purpose.
func (r Rules) Find(t result.Trial) []Stall {
	if len(t.Bursts.NoDrop) > 0 {
		return nil
	}
	var few [64]point // most trials have no more: they take no memory then
	points := pointsOf(t.Bursts, few[:0])
	if len(t.Series) == 0 && r.steady(points) {
		return nil
	}
	found := r.collapsed(points)
	found = outside(found, r.collapsed(secondsOf(t, points)))
	found = outside(found, r.hung(points))
	slices.SortStableFunc(found, func(a, b Stall) int { return cmp.Compare(a.At, b.At) })
	return found
}

// steady says, without the medians that stalls are held against, that there can be none: the slowest point is not far below the fastest,
// and none lasted long. Nearly all trials are.
func (r Rules) steady(points []point) bool {
	slowest, fastest := math.Inf(1), 0.0
	for i := range points {
		p := &points[i]
		if p.amount == 0 || p.length < 0 || max(p.longest, p.length) >= r.Shortest {
			return false
		}
		slowest, fastest = min(slowest, p.rate()), max(fastest, p.rate())
	}
	return slowest >= r.Below*fastest
}

// outside adds the stalls that are not at the time of one that is known.
func outside(known, more []Stall) []Stall {
	for _, s := range more {
		meets := func(k Stall) bool { return s.At < k.At+k.Length && k.At < s.At+s.Length }
		if !slices.ContainsFunc(known, meets) {
			known = append(known, s)
		}
	}
	return known
}

// collapsed finds runs of points whose rate is too low.
func (r Rules) collapsed(points []point) []Stall {
	usual := median(points)
	var found []Stall
	var sum point // of the stall under way
	count := 0    // of its points
	end := func() {
		// Two bursts in turn may have had bad luck each; a third has not.
		lasted := sum.measured >= r.Shortest || sum.length >= r.Shortest && count > 2
		if count > 0 && (sum.amount == 0 || lasted) {
			found = append(found, sum.stall(usual))
		}
		count = 0
	}
	for _, p := range points {
		low := p.rate() < r.Below*usual || p.amount == 0
		switch {
		case low && (p.quiet || p.amount == 0) && count > 0:
			count++
			sum.length = p.at + p.length - sum.at
			sum.amount += p.amount
			sum.measured += p.measured
		case low && (p.quiet || p.amount == 0):
			sum, count = p, 1
		case !low:
			end()
		}
		// A disturbed point that is low, but not empty, says nothing either way.
	}
	end()
	return found
}

// hung finds bursts that are fine but for one transaction, or for the time around their measured part.
func (r Rules) hung(points []point) []Stall {
	lengths, middles := make([]float64, 0, len(points)), make([]float64, 0, len(points))
	for _, p := range points {
		if p.quiet && p.amount > 0 {
			lengths, middles = append(lengths, float64(p.length)), append(middles, p.middle.Seconds())
		}
	}
	if len(lengths) == 0 {
		return nil
	}
	length, middle := time.Duration(stats.Median(lengths)), stats.Median(middles)
	var found []Stall
	for _, p := range points {
		if !p.quiet {
			continue
		}
		// A burst that ends after so many transactions may well take a little longer than others.
		if p.length-length < length/2 {
			p.length = length
		}
		longest := max(p.longest, p.length-length)
		if longest >= r.Shortest && longest.Seconds() >= r.Outlier*middle {
			found = append(found, Stall{At: p.at, Length: max(p.measured, longest), Level: longest.Seconds(), Of: middle, Kind: Hang})
		}
	}
	return found
}

// median is taken over the points in which something arrived, undisturbed ones if there are any; zero without any.
func median(points []point) float64 {
	var quiet, all []float64
	for _, p := range points {
		if p.amount > 0 {
			all = append(all, p.rate())
			if p.quiet {
				quiet = append(quiet, p.rate())
			}
		}
	}
	switch {
	case len(quiet) > 0:
		return stats.Median(quiet)
	case len(all) > 0:
		return stats.Median(all)
	}
	return 0
}

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

// pointsOf adds the bursts of a trial to points. Of columns that it lacks, none can be said to have shown a stall.
func pointsOf(b result.Bursts, points []point) []point {
	for i := range min(len(b.Round), len(b.Start), len(b.Duration)) {
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
	lengths := gather.Each(points, func(p point) time.Duration { return p.measured })
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
