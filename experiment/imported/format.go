package imported

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"netdelta/result"
	"netdelta/workload/tool"
	"netdelta/workload/tool/fio"
	"netdelta/workload/tool/iperf3"
	"netdelta/workload/tool/k6"
	"netdelta/workload/tool/netperf"
	"netdelta/workload/tool/sockperf"
	"netdelta/workload/tool/sysbench"
	"netdelta/workload/tool/wrk"
)

// measured is one test that a file tells of.
type measured struct {
	tool, version string
	workload      string
	params        result.Params
	started       time.Time // zero where the file does not say
	trial         result.Trial
	note          string // what the reader must know
}

// format is what a program writes.
type format struct {
	name string
	is   func(text []byte) bool
	// read reads a file. workload is what the user said, for formats that don't say it.
	read func(text []byte, workload string) ([]measured, error)
}

// reader reads files by what parses them, and makes measurements of what that finds.
func reader[R any](parse func([]byte) (R, error), measurements func(found R, workload string) ([]measured, error)) func([]byte, string) ([]measured, error) {
	return func(text []byte, workload string) ([]measured, error) {
		found, err := parse(text)
		if err != nil {
			return nil, err
		}
		return measurements(found, workload)
	}
}

// formats are all that are recognised, by their content. Those that are told most surely come first.
func formats() []format {
	return []format{
		{"iperf3 (-J)", iperf3.Is, reader(iperf3.Parse, readIperf3)},
		{"fio (--output-format=json)", isFio, reader(fio.Parse, readFio)},
		{"k6 (summary or --out json)", k6.Is, reader(k6.Parse, readK6)},
		{"sockperf (what it prints, or --full-log)", sockperf.Is, reader(sockperf.Parse, readSockperf)},
		{"netperf (tables, -o or -k)", netperf.Is, reader(netperf.Parse, readNetperf)},
		{"wrk (what it prints)", isWrk, reader(wrk.Parse, readWrk)},
		{"sysbench (what it prints)", isSysbench, reader(sysbench.Parse, readSysbench)},
	}
}

// ErrUnknown is the error of a file of no known format.
var ErrUnknown = errors.New("a file of no format that is known")

// parse reads a file in whatever format it has.
func parse(text []byte, workload string) ([]measured, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var names []string
	for _, f := range formats() {
		if !f.is(text) {
			names = append(names, f.name)
			continue
		}
		found, err := f.read(text, workload)
		if err == nil && len(found) == 0 {
			err = errors.New("it has no result")
		}
		if err != nil {
			return nil, fmt.Errorf("as %s: %w", f.name, tool.Place(text, err))
		}
		return found, nil
	}
	return nil, unknown(text, names)
}

// unknown says what a file of another format looks like.
func unknown(text []byte, names []string) error {
	var looks string
	head := string(bytes.TrimSpace(text[:min(len(text), 4<<10)]))
	switch {
	case head == "":
		looks = "it is empty"
	case strings.ContainsRune(head, 0) || !utf8.ValidString(head[:max(len(head)-utf8.UTFMax, 0)]):
		looks = "it is binary"
	case strings.HasPrefix(head, "Connecting to host"):
		looks = "it is what iperf3 prints for people: run it with -J"
	case strings.HasPrefix(head, "------------------------------------------------------------\nClient connecting"):
		looks = "it is of iperf 2: use iperf3 with -J"
	case strings.Contains(head, "execution: local") || strings.Contains(head, "http_req_duration..."):
		looks = "it is what k6 prints for people: run it with --summary-export"
	case strings.Contains(head, "fio-3") || strings.Contains(head, "groupid="):
		looks = "it is what fio prints for people: run it with --output-format=json"
	case strings.HasPrefix(head, "{") || strings.HasPrefix(head, "["):
		looks = "it is JSON of another program"
	default:
		line, _, _ := strings.Cut(head, "\n")
		looks = fmt.Sprintf("it begins with %.60q", line)
	}
	return fmt.Errorf("%w: %s; known are %s", ErrUnknown, looks, strings.Join(names, ", "))
}

// located puts the name of a file, and the place in it, before an error.
func located(name string, err error) error {
	var place *tool.PlaceError
	switch {
	case errors.As(err, &place) && place.Column > 0:
		return fmt.Errorf("%s:%d:%d: %w", name, place.Line, place.Column, without(err, place))
	case errors.As(err, &place):
		return fmt.Errorf("%s:%d: %w", name, place.Line, without(err, place))
	}
	return fmt.Errorf("%s: %w", name, err)
}

// placeless is an error whose place has been said already.
type placeless struct {
	text string
	err  error
}

func (p *placeless) Error() string { return p.text }
func (p *placeless) Unwrap() error { return p.err }

// without leaves the place out of an error's text.
func without(err error, place *tool.PlaceError) error {
	return &placeless{strings.Replace(err.Error(), place.Error(), place.Err.Error(), 1), err}
}
