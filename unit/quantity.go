package unit

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Bytes is a size in bytes.
type Bytes int64

// Sizes that are powers of two.
const (
	Byte Bytes = 1
	KiB        = 1024 * Byte
	MiB        = 1024 * KiB
	GiB        = 1024 * MiB
	TiB        = 1024 * GiB
	PiB        = 1024 * TiB
	EiB        = 1024 * PiB
)

const bytesExample = `"64KiB", "1500" or "1.5MiB"`

// scale is a multiple of a base unit, and the suffix that stands for it.
type scale[T any] struct {
	size   T
	suffix string
}

// binaryUnits returns the binary prefixes, largest first.
func binaryUnits() []scale[Bytes] {
	return []scale[Bytes]{{EiB, "EiB"}, {PiB, "PiB"}, {TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}}
}

// decimalUnits returns the decimal prefixes, largest first.
func decimalUnits() []scale[Bytes] {
	return []scale[Bytes]{{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}
}

// byteScale gives the bytes in one unit of suffix, in any case. A bare "k" or "M" is refused by the caller: tools
// disagree whether it means 1000 or 1024.
func byteScale(suffix string) (Bytes, bool) {
	for _, u := range slices.Concat(binaryUnits(), decimalUnits(), []scale[Bytes]{{1, ""}, {1, "B"}, {1, "byte"}, {1, "bytes"}}) {
		if strings.EqualFold(u.suffix, suffix) {
			return u.size, true
		}
	}
	return 0, false
}

// ParseBytes reads a size: a plain number is bytes, KiB MiB GiB are powers of 1024, kB MB GB powers of 1000, and a
// fraction must come out at whole bytes ("1.5KiB"). Negative sizes, sizes beyond 8 EiB, bits and the ambiguous
// "64k" are refused with a *SyntaxError.
func ParseBytes(s string) (Bytes, error) {
	fail := func(why string) (Bytes, error) {
		return 0, &SyntaxError{Kind: "size", Input: s, Why: why, Example: bytesExample}
	}
	number, suffix := split(s)
	if why := numberProblem(number); why != "" {
		return fail(why)
	}
	if strings.HasSuffix(suffix, "bit") || suffix == "kb" || suffix == "Kb" || suffix == "Mb" || suffix == "Gb" || suffix == "b" {
		return fail("the unit " + strconv.Quote(suffix) + " is of bits, a size is in bytes")
	}
	size, ok := byteScale(suffix)
	if !ok {
		if len(suffix) == 1 && strings.Contains("kKmMgGtT", suffix) {
			why := "the unit " + strconv.Quote(suffix) + " may mean powers of 1000 or of 1024"
			return 0, &SyntaxError{Kind: "size", Input: s, Why: why, Example: fmt.Sprintf("%q or %q", number+suffix+"B", number+strings.ToUpper(suffix)+"iB")}
		}
		return fail("the unit " + strconv.Quote(suffix) + " is unknown")
	}
	if len(number) > 64 {
		return fail("the number is too long")
	}
	// Exact arithmetic: a float would round sizes above 2^53 and accept fractions that are not whole bytes.
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return fail("it does not start with a number")
	}
	value.Mul(value, new(big.Rat).SetInt64(int64(size)))
	switch {
	case !value.IsInt():
		return fail("it is not a whole number of bytes")
	case !value.Num().IsInt64():
		return fail("it is larger than 8 EiB")
	}
	return Bytes(value.Num().Int64()), nil
}

// String prints the size for people: exactly where that is short ("1500B", "64KiB", "10MB"), else scaled to four digits
// ("1.465MiB").
func (b Bytes) String() string {
	exact := b.exact()
	if len(strings.TrimLeft(exact, "-")) <= len("1023KiB") && !strings.HasSuffix(exact, "0000B") {
		return exact
	}
	if decimal, ok := b.decimal(); ok {
		return decimal
	}
	for _, u := range binaryUnits() {
		if magnitude := math.Abs(float64(b)) / float64(u.size); magnitude >= 0.99995 {
			return strconv.FormatFloat(float64(b)/float64(u.size), 'g', 4, 64) + u.suffix
		}
	}
	return exact
}

// exact prints the size in the largest binary unit that divides it.
func (b Bytes) exact() string {
	if b != 0 {
		for _, u := range binaryUnits() {
			if b%u.size == 0 {
				return strconv.FormatInt(int64(b/u.size), 10) + u.suffix
			}
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// decimal prints a size that a user gave in powers of 1000, in the largest that divides it; ok is false where that takes more
// than four digits, as it mostly does for a size that was measured.
func (b Bytes) decimal() (text string, ok bool) {
	for _, u := range decimalUnits() {
		if b%u.size == 0 {
			n := b / u.size
			return strconv.FormatInt(int64(n), 10) + u.suffix, -10000 < n && n < 10000
		}
	}
	return "", false
}

// MarshalText writes the size without rounding.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.exact()), nil }

// UnmarshalText reads what ParseBytes reads.
func (b *Bytes) UnmarshalText(text []byte) error {
	v, err := ParseBytes(string(text))
	if err != nil {
		return err
	}
	*b = v
	return nil
}

// MarshalJSON writes the number of bytes: records hold base units.
func (b Bytes) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(b), 10), nil }

// UnmarshalJSON reads a JSON string as ParseBytes does, and a JSON number as bytes.
func (b *Bytes) UnmarshalJSON(data []byte) error { return unmarshalJSON(data, "size", bytesExample, b) }

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
