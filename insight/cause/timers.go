package cause

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/result"
)

// bucket is how many latencies lie about a value, in nanoseconds.
type bucket struct {
	at float64
	n  uint64
}

// bucketsOf are the latencies of an encoded histogram; none where it can't be read.
func bucketsOf(encoded string) []bucket {
	if encoded == "" {
		return nil
	}
	h, err := result.MergeHistograms(encoded)
	if err != nil {
		return nil
	}
	var all []bucket
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			all = append(all, bucket{float64(b.From+b.To) / 2, uint64(b.Count)})
		}
	}
	return all
}

// The windows in which a timer's mark is looked for, as shares of the timer. What waits for a timer takes as long as it and the rest of
// the transaction. On either side lies what a tail without a mark would have, which falls, on the scale of logarithms, from one side to the
// other.
const (
	markFrom, markTo = 0.97, 1.2
	belowFrom        = 0.6
	aboveTo          = 1.8
	markLeast        = 3
)

// mode is how many latencies wait for a timer, and whether these are more than a tail has there: more than on the denser side of it, beyond
// chance.
func mode(all []bucket, timer float64) (n uint64, is bool) {
	below, above := uint64(0), uint64(0)
	for _, b := range all {
		switch x := b.at / timer; {
		case x >= markFrom && x < markTo:
			n += b.n
		case x >= belowFrom && x < markFrom:
			below += b.n
		case x >= markTo && x < aboveTo:
			above += b.n
		}
	}
	density := func(n uint64, from, to float64) float64 { return float64(n) / math.Log(to/from) }
	expected := math.Log(markTo/markFrom) * max(density(below, belowFrom, markFrom), density(above, markTo, aboveTo))
	tail := distuv.Poisson{Lambda: expected}
	return n, n >= markLeast && float64(n) > 2*expected && (expected == 0 || tail.Survival(float64(n)-1) < chance)
}
