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
		return regexp.MustCompile(banner).MatchString(line) || found && titles()[key] != nil || columns(line)
	}
	return false
}

// columns says whether a line is the head of a table of an omni test.
func columns(line string) bool {
	known := 0
	for _, title := range strings.Split(line, ",") {
		if titles()[strings.TrimSpace(title)] != nil {
			known++
		}
	}
	return strings.Contains(line, ",") && known >= 2
}

// line is a line with its number, from 1.
type line struct {
	number int
	text   string
}

// lines are those of a text, without those that are empty.
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
func pairs(name string, all []line) ([]Report, error) {
	list := []Report{{Test: name}}
	seen := map[string]bool{}
	units := ""
	for _, l := range all {
		key, value, found := strings.Cut(l.text, "=")
		if !found {
			return nil, &tool.PlaceError{Line: l.number, Err: fmt.Errorf("%.60q is none of netperf's tables, its CSV (-o) or its KEY=value lines (-k)", l.text)}
		}
		if seen[key] {
			seen, units = map[string]bool{}, ""
			list = append(list, Report{Test: name})
		}
		seen[key] = true
		if err := set(&list[len(list)-1], key, value, &units); err != nil {
			return nil, &tool.PlaceError{Line: l.number, Column: len(key) + 2, Err: err}
		}
	}
	return list, nil
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
		if err != nil {
			return nil, &tool.PlaceError{Line: l.number, Err: err}
		}
		r, units := Report{Test: name}, ""
		for i, value := range fields {
			if err := set(&r, strings.TrimSpace(head[i]), value, &units); err != nil {
				return nil, &tool.PlaceError{Line: l.number, Err: fmt.Errorf("%s: %w", head[i], err)}
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// set takes one figure by its name. The throughput means nothing without its unit, which may come before it or after.
func set(r *Report, key, value string, units *string) error {
	take := titles()[key]
	if take == nil {
		return nil // one of more than a hundred that nobody asked for
	}
	value = strings.Trim(strings.TrimSpace(value), `"`)
	return take(r, value, units)
}

// taker sets a figure of a report.
type taker func(r *Report, value string, units *string) error

// titles are the names of the figures that are read, as omni tests name them (-k) and as they head CSV (-o).
func titles() map[string]taker {
	all := map[string]taker{}
	add := func(key, title string, take taker) { all[key], all[title] = take, take }
	number := func(key, title string, to func(r *Report, v float64)) {
		add(key, title, func(r *Report, value string, _ *string) error {
			v, err := tool.Number(value)
			if err == nil {
				to(r, v)
			}
			return err
		})
	}
	latency := func(key, title string, to func(r *Report) *float64) {
		number(key, title, func(r *Report, v float64) {
			if v > 0 { // -1 is one that was not kept
				*to(r) = v * 1e3
			}
		})
	}
	add("THROUGHPUT", "Throughput", func(r *Report, value string, units *string) error {
		v, err := tool.Number(value)
		if err != nil {
			return err
		}
		r.Rate = v
		return convert(r, *units)
	})
	add("THROUGHPUT_UNITS", "Throughput Units", func(r *Report, value string, units *string) error {
		*units = value
		return convert(r, value)
	})
	number("ELAPSED_TIME", "Elapsed Time (sec)", func(r *Report, v float64) { r.Duration = seconds(v) })
	number("REQUEST_SIZE", "Request Size Bytes", func(r *Report, v float64) { r.Request = size(v) })
	number("RESPONSE_SIZE", "Response Size Bytes", func(r *Report, v float64) { r.Response = size(v) })
	number("LOCAL_SEND_SIZE", "Local Send Size", func(r *Report, v float64) { r.Message = size(v) })
	number("LOCAL_TRANSPORT_RETRANS", "Local Transport Retransmissions", func(r *Report, v float64) { r.Retransmits = uint64(max(v, 0)) })
	latency("MIN_LATENCY", "Minimum Latency Microseconds", func(r *Report) *float64 { return &r.Min })
	latency("MEAN_LATENCY", "Mean Latency Microseconds", func(r *Report) *float64 { return &r.Mean })
	latency("MAX_LATENCY", "Maximum Latency Microseconds", func(r *Report) *float64 { return &r.Max })
	latency("P50_LATENCY", "50th Percentile Latency Microseconds", func(r *Report) *float64 { return &r.P50 })
	latency("P90_LATENCY", "90th Percentile Latency Microseconds", func(r *Report) *float64 { return &r.P90 })
	latency("P99_LATENCY", "99th Percentile Latency Microseconds", func(r *Report) *float64 { return &r.P99 })
	add("LOCAL_CONG_CONTROL", "Local Congestion Control Algorithm", func(r *Report, value string, _ *string) error { r.Congestion = value; return nil })
	return all
}

// convert makes a throughput of what stands as a rate, once its unit is known.
func convert(r *Report, units string) error {
	factors := map[string]float64{
		"10^3bits/s": 1e3, "10^6bits/s": 1e6, "10^9bits/s": 1e9, "KBytes/s": 8 << 10, "MBytes/s": 8 << 20, "GBytes/s": 8 << 30, "Bytes/s": 8,
	}
	switch factor, bits := factors[units]; {
	case units == "" || units == "Trans/s":
	case !bits:
		return fmt.Errorf("%.20q is no unit that netperf is known to print", units)
	case r.Rate != 0:
		r.Throughput, r.Rate = unit.BitsPerSecond(r.Rate*factor), 0
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
			r.Request, r.Response, r.Duration, r.Rate = size(fields[2]), size(fields[3]), seconds(fields[4]), fields[5]
		case strings.HasPrefix(all[0].text, "Recv   Send"):
			r.Message, r.Duration, r.Throughput = size(fields[2]), seconds(fields[3]), unit.BitsPerSecond(fields[4]*1e6)
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
	r.Message, r.Duration, r.Sent = size(sent[1]), seconds(sent[2]), int64(sent[3])
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

// figures are those of a line.
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

// seconds is a time as netperf prints it; one that no test can take is 0.
func seconds(s float64) time.Duration {
	if !(s > 0 && s < 1e9) {
		return 0
	}
	return time.Duration(s * 1e9)
}

// size is a number of bytes; -1 is one that does not apply.
func size(v float64) unit.Bytes {
	if !(v > 0 && v < 1e15) {
		return 0
	}
	return unit.Bytes(v)
}
