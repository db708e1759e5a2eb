package html

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"netdelta/report/words"
)

// scale maps values to an axis: 0 is its beginning, 1 its end.
type scale struct {
	low, high float64
	log       bool
}

// at is where a value stands; it may be off the axis.
func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return (v - s.low) / (s.high - s.low)
}

// within is at, kept on the axis: what has no place on it stands at its beginning.
func (s scale) within(v float64) float64 {
	at := s.at(v)
	if math.IsNaN(at) {
		return 0
	}
	return min(max(at, 0), 1)
}

// room widens the axis by a share of itself on both sides, and makes one of a single value.
func (s scale) room(share float64) scale {
	if s.log {
		by := math.Pow(s.high/s.low, share)
		if by-1 < 1e-9 {
			by = 1.05
		}
		return scale{s.low / by, s.high * by, true}
	}
	by := share * (s.high - s.low)
	if by <= 1e-12*max(math.Abs(s.low), math.Abs(s.high)) {
		by = max(0.05*math.Abs(s.low), 1e-9)
	}
	return scale{s.low - by, s.high + by, false}
}

// drawable says whether a value can be on an axis: figures that nothing can measure would leave no room for any other.
func drawable(v float64, log bool) bool {
	const most = 1e30
	return math.Abs(v) < most && (!log || v > 1/most)
}

// spanOf is the axis that holds all values that can be drawn; ok is false if there is none.
func spanOf(values []float64, log bool) (s scale, ok bool) {
	s = scale{math.Inf(1), math.Inf(-1), log}
	for _, v := range values {
		if !drawable(v, log) {
			continue
		}
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	return s, s.low <= s.high
}

// step is the roundest number, of 1, 2 and 5 times a power of ten, that cuts a length into at most so many parts.
func step(length float64, parts int) float64 {
	least := length / float64(parts)
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= least*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// linearTicks are the multiples of a round number on an axis.
func (s scale) linearTicks(parts int) []float64 {
	by := step(s.high-s.low, parts)
	first := math.Ceil(s.low/by - 1e-9)
	var all []float64
	for i := range parts + 1 {
		if v := (first + float64(i)) * by; v <= s.high+1e-9*by {
			all = append(all, v)
		}
	}
	return all
}

// logTicks are round values on a log axis that spans more than its own beginning; on a shorter one they are linear.
func (s scale) logTicks(parts int) []float64 {
	if s.high/s.low < 3 {
		return s.linearTicks(parts)
	}
	for _, digits := range [][]float64{{1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}, {1}} {
		if all := s.decades(digits, 1); len(all) <= parts+1 {
			return all
		}
	}
	decades := math.Log10(s.high / s.low)
	return s.decades([]float64{1}, int(math.Ceil(decades/float64(parts))))
}

// decades are the given digits in each every-th power of ten.
func (s scale) decades(digits []float64, every int) []float64 {
	var all []float64
	for k := int(math.Floor(math.Log10(s.low))); math.Pow(10, float64(k)) <= s.high; k++ {
		if k%every != 0 {
			continue
		}
		for _, d := range digits {
			if v := d * math.Pow(10, float64(k)); v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
				all = append(all, v)
			}
		}
	}
	return all
}

// changeTicks are round ratios, no change among them if it is on the axis.
func (s scale) changeTicks(parts int) []float64 {
	if s.high/s.low < 3 {
		shifted := scale{s.low - 1, s.high - 1, false}
		all := shifted.linearTicks(parts)
		for i := range all {
			all[i]++
		}
		return all
	}
	all := s.logTicks(parts)
	if s.low < 1 && s.high > 1 && !slices.Contains(all, 1) {
		all = append(all, 1)
		slices.Sort(all)
	}
	return all
}

// changeLabel prints a ratio on an axis: as a change up to three times as much, from there on as a multiple.
func changeLabel(ratio float64) string {
	if ratio >= 3-1e-9 || ratio <= 1.0/3 {
		return "×" + strconv.FormatFloat(ratio, 'g', 3, 64)
	}
	text := fmt.Sprintf("%+.4g%%", math.Round(1e4*(ratio-1))/100)
	if strings.Trim(text, "+-0.%") == "" {
		return "0"
	}
	return text
}

// valueLabel prints a round value on an axis, without digits that say nothing.
func valueLabel(unitName string, v float64) string { return rounded(words.Value(unitName, v)) }

// differenceLabel prints a round difference on an axis in the same way.
func differenceLabel(unitName string, v float64) string {
	return rounded(words.Difference(unitName, v))
}

// rounded is a figure with its unit, without zeros behind its point.
func rounded(text string) string {
	number, rest, _ := strings.Cut(text, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return strings.TrimSpace(number + " " + rest)
}
