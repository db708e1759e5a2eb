package unit

import (
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
