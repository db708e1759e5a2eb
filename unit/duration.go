package unit

import (
	"math"
	"strconv"
	"strings"
	"time"
)

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
