// Package unit holds the quantities that netdelta measures and is configured with, as types:
// sizes in bytes, rates in bits per second, latencies and ratios.
//
// Values are stored in base units (bytes, bits per second, nanoseconds) and scaled only when they
// are printed. String is for people and may round; MarshalText is for files and never does.
package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Thousands prints a count with a comma before each three digits: 1,234.
func Thousands[N int | int64 | uint64](n N) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Counted is a count with its noun, given for one: "1 trial", "2,000 trials", "3 policies".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	stem, irregular := strings.CutSuffix(noun, "y")
	if irregular {
		return Thousands(n) + " " + stem + "ies"
	}
	return Thousands(n) + " " + noun + "s"
}

// Ratio is a value over its baseline: 1 is no change, 1.2345 is 23.45% more.
type Ratio float64

// Percent prints the change against the baseline with one decimal: "+23.5%", "-4.0%", "0.0%". A ratio that is not a
// number prints as "n/a".
func (r Ratio) Percent() string { return r.PercentTo(1) }

// PercentTo is Percent with a chosen number of decimals, 0 to 6.
func (r Ratio) PercentTo(decimals int) string {
	if math.IsNaN(float64(r)) || math.IsInf(float64(r), 0) {
		return "n/a"
	}
	decimals = min(max(decimals, 0), 6)
	// Rounded before 1 is taken off: 1.2345-1 is a hair under 0.2345 in binary, and would print as 23.4%.
	scale := math.Pow10(decimals)
	change := (math.Round(float64(r)*100*scale) - 100*scale) / scale
	text := strconv.FormatFloat(change, 'f', decimals, 64) + "%"
	if change > 0 {
		return "+" + text
	}
	return text
}

// Duration prints a latency to three digits in the unit that suits it: "12.3 µs", "850 ns", "1.20 ms". It rounds
// half away from zero.
func Duration(d time.Duration) string { return strings.TrimPrefix(Difference(d), "+") }

// Difference prints a latency that was added or saved, with its sign: "+3.21 µs", "-850 ns". No difference is "0 ns".
func Difference(d time.Duration) string {
	switch {
	case d > 0:
		return "+" + magnitude(float64(d))
	case d < 0:
		return "-" + magnitude(-float64(d))
	}
	return magnitude(0)
}

// magnitude prints nanoseconds, zero or more, to three digits.
func magnitude(ns float64) string {
	units := []struct {
		size float64
		name string
	}{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	if ns < 1e3 {
		return strconv.FormatFloat(math.Round(ns), 'f', 0, 64) + " ns"
	}
	for i, u := range units[1:] {
		decimals, v := 2, ns/u.size
		for decimals > 0 && math.Round(v*math.Pow10(decimals)) >= 1000 {
			decimals--
		}
		// 999.6 µs rounds to 1000 µs: that is 1.00 ms.
		if v = math.Round(v*math.Pow10(decimals)) / math.Pow10(decimals); v < 1000 || i == len(units)-2 {
			return strconv.FormatFloat(v, 'f', decimals, 64) + " " + u.name
		}
	}
	return ""
}

// FormatDuration prints a duration as flags and study files take it. It leaves out the zero units that time.Duration prints: "1m", not "1m0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ErrSyntax marks text that is not a quantity of the wanted kind. Match it with errors.Is.
var ErrSyntax = errors.New("not a quantity")

// SyntaxError says which text could not be read, why, and what a right one looks like.
type SyntaxError struct {
	Kind    string // what was wanted: "size" or "rate"
	Input   string // the text as given
	Why     string // what is wrong with it
	Example string // a text that would have been accepted
}

// Error names the input and gives an example of a right one.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("parsing %s %q: %s; write for example %s", e.Kind, e.Input, e.Why, e.Example)
}

// Is reports whether target is ErrSyntax.
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// split cuts a quantity into its number and its suffix: "1.5 MiB" gives "1.5" and "MiB". The number is
// plain decimal: an exponent would make "1e3" and "1E" (exa) hard to distinguish.
func split(s string) (number, suffix string) {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' || end == 0 && (s[end] == '-' || s[end] == '+')) {
		end++
	}
	return s[:end], strings.TrimSpace(s[end:])
}

// numberProblem says what is wrong with the text of a number, or "" when it is a plain decimal, not negative.
func numberProblem(number string) string {
	switch {
	case !strings.ContainsAny(number, "0123456789"):
		return "it does not start with a number"
	case number[0] == '-':
		return "it is negative"
	case strings.Count(number, ".") > 1:
		return "it has more than one decimal point"
	}
	return ""
}
