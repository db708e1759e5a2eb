package netperf

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// banner begins what each test prints unless it is told not to (-P 0).
const banner = `^(?:MIGRATED )?((?:TCP|UDP) (?:STREAM|REQUEST/RESPONSE|Connect/Request/Response)|OMNI [A-Za-z|]+) TEST from `

// tests are the names of what banners say.
func tests() map[string]string {
	return map[string]string{
		"TCP STREAM": TCPStream, "UDP STREAM": UDPStream, "TCP REQUEST/RESPONSE": TCPRR, "UDP REQUEST/RESPONSE": UDPRR,
		"TCP Connect/Request/Response": TCPCRR,
	}
}

// Is says whether a text looks like what netperf prints.
func Is(text []byte) bool {
	for _, l := range lines(text[:min(len(text), 64<<10)]) {
		line := strings.TrimSpace(l.text)
		if line == "" {
			continue
		}
		key, _, found := strings.Cut(line, "=")
		return regexp.MustCompile(banner).MatchString(line) || found && known(key) || columns(line)
	}
	return false
}

// columns says whether a line is the head of a table of an omni test.
func columns(line string) bool {
	titles := 0
	for title := range strings.SplitSeq(line, ",") {
		if known(strings.TrimSpace(title)) {
			titles++
		}
	}
	return titles >= 2
}

// line is a line with its number, from 1.
type line struct {
	number int
	text   string
}

// lines are the lines of a text that are not empty.
func lines(text []byte) []line {
	var all []line
	for i, l := range bytes.Split(text, []byte("\n")) {
		if s := strings.TrimRight(string(l), " \t\r"); s != "" {
			all = append(all, line{i + 1, s})
		}
	}
	return all
}

// Parse reads what netperf has printed: the tests in their order, of which CSV may hold several (a line each). Errors in its form
// have a place (tool.PlaceError).
func Parse(text []byte) ([]Report, error) {
	var all []Report
	rest := lines(text)
	form := regexp.MustCompile(banner)
	for len(rest) > 0 {
		name := ""
		start := rest[0]
		if m := form.FindStringSubmatch(start.text); m != nil {
			name, rest = tests()[m[1]], rest[1:]
		}
		end := 0
		for end < len(rest) && !form.MatchString(rest[end].text) {
			end++
		}
		found, err := block(name, rest[:end])
		if err != nil {
			return nil, err
		}
		rest = rest[end:]
		for _, r := range found {
			if err := r.validate(); err != nil {
				return nil, &tool.PlaceError{Line: start.number, Err: err}
			}
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the file has no result", ErrNothing)
	}
	return all, nil
}

// block reads what follows a banner.
func block(name string, all []line) ([]Report, error) {
	switch {
	case len(all) == 0:
		return nil, nil
	case strings.HasPrefix(all[0].text, "Local /Remote") || strings.HasPrefix(all[0].text, "Recv   Send") || strings.HasPrefix(all[0].text, "Socket  Message"):
		r, err := classic(name, all)
		return []Report{r}, err
	case columns(all[0].text):
		return table(name, all)
	}
	return pairs(name, all)
}

// pairs reads KEY=value lines. A key that comes again begins another test.
func pairs(name string, all []line) (list []Report, err error) {
	r := reading{Report: Report{Test: name}}
	seen := map[string]bool{}
	for _, l := range all {
		key, value, found := strings.Cut(l.text, "=")
		if !found {
			return nil, &tool.PlaceError{Line: l.number, Err: fmt.Errorf("%.60q is none of netperf's tables, its CSV (-o) or its KEY=value lines (-k)", l.text)}
		}
		if seen[key] {
			list = append(list, r.Report)
			seen, r = map[string]bool{}, reading{Report: Report{Test: name}}
		}
		seen[key] = true
		if err := r.set(key, value); err != nil {
			return nil, &tool.PlaceError{Line: l.number, Column: len(key) + 2, Err: err}
		}
	}
	return append(list, r.Report), nil
}

// table reads CSV: a head, and a line for each test.
func table(name string, all []line) ([]Report, error) {
	head := strings.Split(all[0].text, ",")
	var list []Report
	for _, l := range all[1:] {
		fields, err := csv.NewReader(strings.NewReader(l.text)).Read()
		if err == nil && len(fields) != len(head) {
			err = fmt.Errorf("%d values under %d titles", len(fields), len(head))
		}
		r := reading{Report: Report{Test: name}}
		for i := 0; err == nil && i < len(fields); i++ {
			if err = r.set(strings.TrimSpace(head[i]), fields[i]); err != nil {
				err = fmt.Errorf("%s: %w", head[i], err)
			}
		}
		if err != nil {
			return nil, &tool.PlaceError{Line: l.number, Err: err}
		}
		list = append(list, r.Report)
	}
	return list, nil
}

// reading is a test under way: its throughput means nothing without its unit, which may come before it or after.
type reading struct {
	Report
	throughput figure
	units      units
}

type (
	figure float64
	units  string
)

// fields are the places of the figures that are read, as omni tests name them (-k) and as they head CSV (-o).
func (r *reading) fields() map[string]any {
	return map[string]any{
		"THROUGHPUT": &r.throughput, "Throughput": &r.throughput,
		"THROUGHPUT_UNITS": &r.units, "Throughput Units": &r.units,
		"ELAPSED_TIME": &r.Duration, "Elapsed Time (sec)": &r.Duration,
		"REQUEST_SIZE": &r.Request, "Request Size Bytes": &r.Request,
		"RESPONSE_SIZE": &r.Response, "Response Size Bytes": &r.Response,
		"LOCAL_SEND_SIZE": &r.Message, "Local Send Size": &r.Message,
		"LOCAL_TRANSPORT_RETRANS": &r.Retransmits, "Local Transport Retransmissions": &r.Retransmits,
		"MIN_LATENCY": &r.Min, "Minimum Latency Microseconds": &r.Min,
		"MEAN_LATENCY": &r.Mean, "Mean Latency Microseconds": &r.Mean,
		"MAX_LATENCY": &r.Max, "Maximum Latency Microseconds": &r.Max,
		"P50_LATENCY": &r.P50, "50th Percentile Latency Microseconds": &r.P50,
		"P90_LATENCY": &r.P90, "90th Percentile Latency Microseconds": &r.P90,
		"P99_LATENCY": &r.P99, "99th Percentile Latency Microseconds": &r.P99,
		"LOCAL_CONG_CONTROL": &r.Congestion, "Local Congestion Control Algorithm": &r.Congestion,
	}
}

// known says whether a name is one of the figures that are read.
func known(name string) bool { return new(reading).fields()[name] != nil }

// set takes one figure by its name, unless it is one of more than a hundred that nothing reads.
func (r *reading) set(key, value string) (err error) {
	value = strings.Trim(strings.TrimSpace(value), `"`)
	number := func() (v float64) {
		v, err = tool.Number(value)
		return v
	}
	switch to := r.fields()[key].(type) {
	case *figure:
		*to = figure(number())
	case *units:
		*to = units(value)
	case *string:
		*to = value
	case *time.Duration:
		*to = tool.Duration(number())
	case *unit.Bytes:
		*to = size(number())
	case *uint64:
		*to = uint64(max(number(), 0))
	case *float64:
		if us := number(); us > 0 { // -1 is one that was not kept
			*to = us * 1e3
		}
	}
	if err != nil {
		return err
	}
	return r.convert()
}

// convert takes the throughput for a rate or for a throughput, by its unit.
func (r *reading) convert() error {
	factor, bits := map[units]float64{
		"10^3bits/s": 1e3, "10^6bits/s": 1e6, "10^9bits/s": 1e9, "KBytes/s": 8 << 10, "MBytes/s": 8 << 20, "GBytes/s": 8 << 30, "Bytes/s": 8,
	}[r.units]
	switch {
	case bits:
		r.Rate, r.Throughput = 0, unit.BitsPerSecond(float64(r.throughput)*factor)
	case r.units == "" || r.units == "Trans/s":
		r.Rate = float64(r.throughput)
	default:
		return fmt.Errorf("%.20q is no unit that netperf is known to print", string(r.units))
	}
	return nil
}

// classic reads a table as netperf prints it by itself.
func classic(name string, all []line) (Report, error) {
	r := Report{Test: name}
	for i, l := range all {
		if strings.Trim(l.text, "0123456789.- ") != "" {
			continue // a title
		}
		fields, err := figures(l)
		if err != nil {
			return r, err
		}
		if len(fields) < 5 {
			return r, &tool.PlaceError{Line: l.number, Err: fmt.Errorf("%d figures in a table that has five or more", len(fields))}
		}
		switch {
		case strings.HasPrefix(all[0].text, "Local /Remote") && len(fields) >= 6:
			r.Request, r.Response, r.Duration, r.Rate = size(fields[2]), size(fields[3]), tool.Duration(fields[4]), fields[5]
		case strings.HasPrefix(all[0].text, "Recv   Send"):
			r.Message, r.Duration, r.Throughput = size(fields[2]), tool.Duration(fields[3]), unit.BitsPerSecond(fields[4]*1e6)
		case strings.HasPrefix(all[0].text, "Socket  Message") && len(fields) >= 6:
			return r.datagrams(fields, all[i+1:])
		default:
			return r, &tool.PlaceError{Line: l.number, Err: fmt.Errorf("%d figures are too few for this table", len(fields))}
		}
		return r, nil
	}
	return r, &tool.PlaceError{Line: all[0].number, Err: fmt.Errorf("%w: the table has no figures", ErrNothing)}
}

// datagrams reads the two lines of a stream of them: what was sent, and what arrived.
func (r Report) datagrams(sent []float64, rest []line) (Report, error) {
	r.Message, r.Duration, r.Sent = size(sent[1]), tool.Duration(sent[2]), int64(sent[3])
	if len(rest) == 0 {
		return r, fmt.Errorf("%w: the line of what was received is missing", ErrNothing)
	}
	received, err := figures(rest[0])
	if err == nil && len(received) < 4 {
		err = &tool.PlaceError{Line: rest[0].number, Err: fmt.Errorf("%d figures are too few for what was received", len(received))}
	}
	if err != nil {
		return r, err
	}
	r.Received, r.Throughput = int64(received[2]), unit.BitsPerSecond(received[3]*1e6)
	return r, nil
}

// figures are the numbers of a line.
func figures(l line) ([]float64, error) {
	var all []float64
	for _, f := range strings.Fields(l.text) {
		v, err := tool.Number(f)
		if err != nil {
			return nil, &tool.PlaceError{Line: l.number, Err: err}
		}
		all = append(all, v)
	}
	return all, nil
}

// size is a number of bytes; -1 is one that does not apply.
func size(v float64) unit.Bytes {
	if !(v > 0 && v < 1e15) {
		return 0
	}
	return unit.Bytes(v)
}
