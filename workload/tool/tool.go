// Package tool has what the readers of other programs' output share: the packages below it know one program each, what to call
// it with and how to read what it says.
package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PlaceError is something wrong at a place in what a program wrote.
type PlaceError struct {
	Line   int // from 1
	Column int // from 1, in bytes; 0 is the line as a whole
	Err    error
}

// Error says the place as editors write it, and what is wrong there.
func (e *PlaceError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("%d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("%d:%d: %v", e.Line, e.Column, e.Err)
}

func (e *PlaceError) Unwrap() error { return e.Err }

// At gives an error the place of a byte of data: the one at offset, counted from 0.
func At(data []byte, offset int64, err error) error {
	before := data[:min(max(offset, 0), int64(len(data)))]
	return &PlaceError{Line: 1 + bytes.Count(before, []byte("\n")), Column: len(before) - bytes.LastIndexByte(before, '\n'), Err: err}
}

// Place gives an error of encoding/json the place in data that it means. One that knows no place, or has one, stays as it is.
func Place(data []byte, err error) error {
	var placed *PlaceError
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &placed):
	case errors.As(err, &syntax):
		// The offset is of what has been read: the byte before it is the one that is wrong.
		return At(data, syntax.Offset-1, err)
	case errors.As(err, &kind):
		return At(data, kind.Offset-1, err)
	}
	return err
}

// JSON decodes a document, the errors of which have their place.
func JSON(data []byte, into any) error { return Place(data, json.Unmarshal(data, into)) }

// most is beyond everything that can be measured, in whatever unit, and small enough for units to be converted.
const most = 1e100

// Number reads a figure as programs print it. Neither infinity nor what is no number is one.
func Number(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.Abs(n) > most {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return n, nil
}

// Duration is a time in seconds as programs print it; one that no test can take is 0.
func Duration(seconds float64) time.Duration {
	if !(seconds > 0 && seconds < 1e9) {
		return 0
	}
	return time.Duration(seconds * 1e9)
}

// Seconds is a time in whole seconds, rounded up, for a command line.
func Seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Older compares versions as programs print them, by the numbers that they begin with: 3.9 is older than 3.10-rc1.
func Older(a, b string) bool { return slices.Compare(numbers(a), numbers(b)) < 0 }

func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
		n, err := strconv.Atoi(part[:digits])
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}
