// Package result holds the records of a run: cells, trials, deltas, the environment, and the journal that keeps them on disk.
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
// tenth of the time that a decoder takes that has to be ready for anything. The values take the place of
// room's. It returns what follows; false for all that is written otherwise.
func readColumns(text []byte, names []string, room *Bursts) (b Bursts, rest []byte, ok bool) {
	columns, rooms := reflect.ValueOf(&b).Elem(), reflect.ValueOf(room).Elem()
	for i, name := range names {
		own := len(name) + len(`"":[`)
		if len(text) <= own || text[0] != '"' || string(text[1:1+len(name)]) != name || string(text[1+len(name):own]) != `":[` {
			continue // left out
		}
		ok = false
		switch column := rooms.Field(i).Addr().Interface().(type) {
		case *[]int:
			text, ok = readColumn(column, text[own:], readNumber[int])
		case *[]int64:
			text, ok = readColumn(column, text[own:], readNumber[int64])
		case *[]float64:
			text, ok = readColumn(column, text[own:], readFloat)
		case *[]string:
			text, ok = readColumn(column, text[own:], readWord)
		}
		if column := rooms.Field(i); column.Len() > 0 {
			columns.Field(i).Set(column)
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

// readColumn reads the values of an array, from behind its bracket, one by one, and takes no more room than they do.
func readColumn[T any](to *[]T, text []byte, one func([]byte) (T, []byte, bool)) (rest []byte, ok bool) {
	column := (*to)[:0]
	end := bytes.IndexByte(text, ']')
	if *to = column; end <= 0 {
		return text[end+1:], end == 0
	}
	if n := 1 + bytes.Count(text[:end], []byte(",")); n > cap(column) {
		column = make([]T, 0, n)
	}
	for {
		value, rest, ok := one(text)
		if !ok || len(rest) == 0 {
			return nil, false
		}
		column = append(column, value)
		switch text = rest[1:]; rest[0] {
		case ']':
			*to = column
			return text, true
		case ',':
		default:
			return nil, false
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
