package result

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// columnNames are the names of the columns of bursts, in the order in which they are written.
func columnNames() []string {
	var names []string
	for field := range reflect.TypeFor[Bursts]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// readColumns decodes bursts as encodeTrial writes them, from behind their first brace: columns are nearly all of a journal, and need a
// tenth of the time that a decoder takes that has to be ready for anything. It returns what follows; false for all that is written
// otherwise.
func readColumns(text []byte, names []string) (b Bursts, rest []byte, ok bool) {
	columns := reflect.ValueOf(&b).Elem()
	for i, name := range names {
		own := len(name) + len(`"":[`)
		if len(text) <= own || text[0] != '"' || string(text[1:1+len(name)]) != name || string(text[1+len(name):own]) != `":[` {
			continue // left out
		}
		ok = false
		switch column := columns.Field(i).Addr().Interface().(type) {
		case *[]int:
			*column, text, ok = readColumn(text[own:], readNumber[int])
		case *[]int64:
			*column, text, ok = readColumn(text[own:], readNumber[int64])
		case *[]float64:
			*column, text, ok = readColumn(text[own:], readFloat)
		case *[]string:
			*column, text, ok = readColumn(text[own:], readWord)
		}
		switch {
		case !ok || len(text) == 0:
			return Bursts{}, nil, false
		case text[0] == '}':
			return b.complete(), text[1:], true
		case text[0] == ',':
			text = text[1:]
		}
	}
	return Bursts{}, nil, false
}

// readColumn reads the values of an array, from behind its bracket, one by one. It has no more room than they take.
func readColumn[T any](text []byte, one func([]byte) (T, []byte, bool)) (column []T, rest []byte, ok bool) {
	end := bytes.IndexByte(text, ']')
	if end <= 0 {
		return nil, text[end+1:], end == 0
	}
	column = make([]T, 0, 1+bytes.Count(text[:end], []byte(",")))
	for {
		value, rest, ok := one(text)
		if !ok || len(rest) == 0 {
			return nil, nil, false
		}
		column = append(column, value)
		switch text = rest[1:]; rest[0] {
		case ']':
			return column, text, true
		case ',':
		default:
			return nil, nil, false
		}
	}
}

// readNumber reads a whole number of up to 18 digits.
func readNumber[T int | int64](text []byte) (n T, rest []byte, ok bool) {
	digits := bytes.TrimPrefix(text, []byte("-"))
	at := 0
	for ; at < len(digits) && at < 19 && digits[at]-'0' <= 9; at++ {
		n = 10*n + T(digits[at]-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, digits[at:], at > 0 && at < 19
}

// exactDigits is how many decimal digits a float64 holds, whatever they are: such a number over a power of ten is rounded once, as it
// should be.
const exactDigits = 15

// readFloat reads a number.
func readFloat(text []byte) (x float64, rest []byte, ok bool) {
	mantissa, digits, fraction := int64(0), 0, 0
	at, plain := 0, true
	for ; at < len(text) && text[at] != ',' && text[at] != ']'; at++ {
		switch c := text[at]; {
		case c-'0' <= 9:
			if digits++; digits <= exactDigits {
				mantissa = 10*mantissa + int64(c-'0')
			}
			if fraction > 0 {
				fraction++
			}
		case c == '.' && fraction == 0:
			fraction = 1
		case c == '-' && at == 0:
		case c == 'e', c == 'E', c == '-', c == '+':
			plain = false
		default:
			return 0, nil, false
		}
	}
	if !plain || digits > exactDigits || digits == 0 {
		x, err := strconv.ParseFloat(string(text[:at]), 64)
		return x, text[at:], err == nil
	}
	x = float64(mantissa) / math.Pow10(max(fraction-1, 0))
	if text[0] == '-' {
		x = -x
	}
	return x, text[at:], true
}

// readWord reads a text without anything that JSON writes otherwise than it is.
func readWord(text []byte) (word string, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return "", nil, false
	}
	end := bytes.IndexByte(text[1:], '"')
	if end < 0 || bytes.IndexByte(text[1:1+end], '\\') >= 0 {
		return "", nil, false
	}
	return string(text[1 : 1+end]), text[end+2:], true
}
