package unit

import (
	"bytes"
	"encoding"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// BitsPerSecond is a data rate in bits per second. It is a float64 because most rates are measured: quotients of
// bytes and time, which are rarely whole; every whole rate up to 9 Pbit/s is still exact.
type BitsPerSecond float64

// Rates, in powers of 1000 as network equipment counts.
const (
	BitPerSecond BitsPerSecond = 1
	Kbit                       = 1000 * BitPerSecond
	Mbit                       = 1000 * Kbit
	Gbit                       = 1000 * Mbit
	Tbit                       = 1000 * Gbit
)

const rateExample = `"10Gbit/s", "20 Mbit" or "10Gbps"`

// ParseRate reads a rate: a number and an optional k, M, G or T (powers of 1000) with bit, bit/s, bps or b/s. A
// plain number is bits per second. Bytes per second are refused, since a factor of eight is too easily lost, and so
// are negative and endless rates: all with a *SyntaxError.
func ParseRate(s string) (BitsPerSecond, error) {
	fail := func(why string) (BitsPerSecond, error) {
		return 0, &SyntaxError{Kind: "rate", Input: s, Why: why, Example: rateExample}
	}
	number, suffix := split(s)
	if why := numberProblem(number); why != "" {
		return fail(why)
	}
	size, ok := rateScale(suffix)
	if !ok {
		if strings.Contains(suffix, "B") {
			return fail("the unit " + strconv.Quote(suffix) + " is of bytes, a rate is in bits per second")
		}
		return fail("the unit " + strconv.Quote(suffix) + " is unknown")
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return fail("the number is out of range")
	}
	rate := BitsPerSecond(value) * size
	if math.IsInf(float64(rate), 0) {
		return fail("the rate is out of range")
	}
	return rate, nil
}

// rateScale gives the bits per second of one unit of suffix. The prefix is read in either case, "B" never is "b".
func rateScale(suffix string) (BitsPerSecond, bool) {
	if suffix == "" {
		return BitPerSecond, true
	}
	for _, unit := range []string{"bits/s", "bit/s", "bits", "bit", "bps", "b/s"} {
		if prefix, found := strings.CutSuffix(suffix, unit); found {
			i := slices.IndexFunc(rateUnits(), func(u scale[BitsPerSecond]) bool { return strings.EqualFold(u.suffix, prefix+"bit/s") })
			if i < 0 {
				break
			}
			return rateUnits()[i].size, true
		}
	}
	return 0, false
}

// rateUnits returns the prefixes, largest first.
func rateUnits() []scale[BitsPerSecond] {
	return []scale[BitsPerSecond]{{Tbit, "Tbit/s"}, {Gbit, "Gbit/s"}, {Mbit, "Mbit/s"}, {Kbit, "kbit/s"}, {BitPerSecond, "bit/s"}}
}

// String prints the rate for people, scaled to four digits: "9.413Gbit/s".
func (r BitsPerSecond) String() string {
	v := float64(r)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64) + "bit/s"
	}
	for _, u := range rateUnits() {
		// 999.95 would print as 1000: the next unit is nearer to what people read.
		if math.Abs(v) >= 0.99995*float64(u.size) || u.size == BitPerSecond {
			rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v/float64(u.size), 'g', 4, 64), 64)
			return strconv.FormatFloat(rounded, 'f', -1, 64) + u.suffix
		}
	}
	return ""
}

// MarshalText writes the rate without rounding, in the largest unit that reads back as exactly the same number.
// A rate that is negative, NaN or infinite is refused: it would not read back.
func (r BitsPerSecond) MarshalText() ([]byte, error) {
	v := float64(r)
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return nil, &SyntaxError{Kind: "rate", Input: r.String(), Why: "it is not a finite rate of zero or more", Example: rateExample}
	}
	if v != 0 {
		for _, u := range rateUnits() {
			text := strconv.FormatFloat(v/float64(u.size), 'f', -1, 64)
			if back, err := ParseRate(text + u.suffix); err == nil && back == r && v >= float64(u.size) {
				return []byte(text + u.suffix), nil
			}
		}
	}
	return []byte(strconv.FormatFloat(v, 'f', -1, 64) + "bit/s"), nil
}

// UnmarshalText reads what ParseRate reads.
func (r *BitsPerSecond) UnmarshalText(text []byte) error {
	v, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = v
	return nil
}

// MarshalJSON writes the number of bits per second: records hold base units. A rate that MarshalText refuses is an error.
func (r BitsPerSecond) MarshalJSON() ([]byte, error) {
	if _, err := r.MarshalText(); err != nil {
		return nil, err
	}
	return strconv.AppendFloat(nil, float64(r), 'f', -1, 64), nil
}

// UnmarshalJSON reads a JSON string as ParseRate does, and a JSON number as bits per second.
func (r *BitsPerSecond) UnmarshalJSON(data []byte) error {
	return unmarshalJSON(data, "rate", rateExample, r)
}

// unmarshalJSON lets a quantity be a JSON string or a plain JSON number; null leaves it alone, as encoding/json asks.
func unmarshalJSON(data []byte, kind, example string, into encoding.TextUnmarshaler) error {
	data = bytes.TrimSpace(data)
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if len(data) == 0 || data[0] != '"' {
		if len(data) > 0 && (data[0] == '{' || data[0] == '[' || data[0] == 't' || data[0] == 'f') {
			return &SyntaxError{Kind: kind, Input: string(data), Why: "it is neither a text nor a number", Example: example}
		}
		return into.UnmarshalText(data)
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return &SyntaxError{Kind: kind, Input: string(data), Why: err.Error(), Example: example}
	}
	return into.UnmarshalText([]byte(text))
}
