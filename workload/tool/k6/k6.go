// Package k6 reads what the program k6 measured: the summary that it exports (--summary-export, or the data of handleSummary) and
// its stream of points (--out json).
package k6

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// Report is what one run of k6 measured of HTTP. Latencies are nanoseconds, of whole requests without their connections.
type Report struct {
	Started  time.Time // zero where it does not say
	Duration time.Duration
	Requests int64
	Rate     float64 // requests per second, failed ones among them
	Failed   int64
	// Received is what was received, heads of responses among it.
	Received                 unit.Bytes
	VUs                      int // virtual users, at most; 0 where it does not say
	Mean, Min, Max, P50, P90 float64
	P99                      float64 // 0 where it was not asked for
	// Latencies are all, in the order of their points; none in a summary.
	Latencies []float64
}

// ErrNothing is the error of a run without requests.
var ErrNothing = errors.New("k6 has measured no requests")

// Is says whether a text looks like a summary of k6, or its stream.
func Is(text []byte) bool {
	head := string(text[:min(len(text), 64<<10)])
	trimmed := strings.TrimSpace(head)
	return strings.HasPrefix(trimmed, "{") &&
		(isStream([]byte(trimmed)) || strings.Contains(head, `"metrics"`) && (strings.Contains(head, `"http_req`) || strings.Contains(head, `"iterations"`) || strings.Contains(head, `"root_group"`)))
}

// isStream says whether a text is one of points.
func isStream(text []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return bytes.Contains(line, []byte(`"type"`)) && bytes.Contains(line, []byte(`"metric"`)) &&
		(bytes.Contains(line, []byte(`"Metric"`)) || bytes.Contains(line, []byte(`"Point"`)))
}

// Parse reads a summary or a stream. Errors in its form have a place (tool.PlaceError).
func Parse(text []byte) (Report, error) {
	read := summary
	if isStream(text) {
		read = stream
	}
	r, err := read(text)
	if err != nil {
		return r, err
	}
	return r, r.validate()
}

// validate refuses figures that nothing can have.
func (r Report) validate() error {
	if r.Requests == 0 || !(r.Rate > 0) || r.Duration <= 0 {
		return fmt.Errorf("%w: it has no requests of HTTP with their rate", ErrNothing)
	}
	for _, v := range []float64{float64(r.Requests), float64(r.Failed), float64(r.Received), r.Mean, r.Min, r.Max, r.P50, r.P90, r.P99} {
		if v < 0 || math.IsInf(v, 0) {
			return fmt.Errorf("k6 reports a figure of %g: that can't be", v)
		}
	}
	return nil
}

// metric is one of a summary, whose values stand in it or one level below.
type metric struct{ values map[string]float64 }

// UnmarshalJSON takes the numbers and leaves the rest, as thresholds.
func (m *metric) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if below, nested := all["values"]; nested {
		if err := json.Unmarshal(below, &all); err != nil {
			return err
		}
	}
	m.values = map[string]float64{}
	for key, raw := range all {
		var v float64
		if json.Unmarshal(raw, &v) == nil {
			m.values[key] = v
		}
	}
	return nil
}

// summary reads a summary.
func summary(text []byte) (Report, error) {
	var doc struct {
		Metrics map[string]metric `json:"metrics"`
		State   struct {
			Milliseconds float64 `json:"testRunDurationMs"`
		} `json:"state"`
	}
	if err := tool.JSON(text, &doc); err != nil {
		return Report{}, err
	}
	requests, times := doc.Metrics["http_reqs"].values, doc.Metrics["http_req_duration"].values
	millis := func(key string) float64 { return times[key] * 1e6 }
	r := Report{
		Requests: int64(requests["count"]), Rate: requests["rate"], Failed: int64(doc.Metrics["http_req_failed"].values["passes"]),
		Received: unit.Bytes(doc.Metrics["data_received"].values["count"]), VUs: int(doc.Metrics["vus_max"].values["value"]),
		Mean: millis("avg"), Min: millis("min"), Max: millis("max"), P50: millis("med"), P90: millis("p(90)"), P99: millis("p(99)"),
	}
	seconds := doc.State.Milliseconds / 1e3
	if seconds == 0 && r.Rate > 0 {
		seconds = float64(r.Requests) / r.Rate
	}
	if seconds > 0 && seconds < 1e9 {
		r.Duration = time.Duration(seconds * 1e9)
	}
	return r, nil
}

// point is a line of a stream.
type point struct {
	Type   string `json:"type"`
	Metric string `json:"metric"`
	Data   struct {
		Time  time.Time `json:"time"`
		Value float64   `json:"value"`
	} `json:"data"`
}

// stream reads a stream. It ends where it was cut off: k6 writes it as it goes.
func stream(text []byte) (Report, error) {
	r := Report{}
	last := time.Time{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var p point
		if err := json.Unmarshal(line, &p); err != nil {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break
			}
			return r, &tool.PlaceError{Line: number, Err: fmt.Errorf("not a point of k6's stream: %w", err)}
		}
		if p.Type == "Point" {
			r.take(p, &last)
		}
	}
	r.close(last)
	return r, nil
}

// take adds a point.
func (r *Report) take(p point, last *time.Time) {
	switch p.Metric {
	case "http_reqs":
		r.Requests += int64(p.Data.Value)
	case "http_req_failed":
		r.Failed += int64(p.Data.Value)
	case "data_received":
		r.Received += unit.Bytes(p.Data.Value)
	case "vus", "vus_max":
		r.VUs = max(r.VUs, int(p.Data.Value))
		return
	case "http_req_duration":
		r.Latencies = append(r.Latencies, p.Data.Value*1e6)
	default:
		return
	}
	begun := p.Data.Time
	if p.Metric == "http_req_duration" { // a point is of the end of its request
		begun = begun.Add(-time.Duration(min(max(p.Data.Value, 0), 1e9) * 1e6))
	}
	if r.Started.IsZero() || begun.Before(r.Started) {
		r.Started = begun
	}
	if p.Data.Time.After(*last) {
		*last = p.Data.Time
	}
}

// close makes figures of the points.
func (r *Report) close(last time.Time) {
	r.Duration = last.Sub(r.Started)
	if r.Duration > 0 {
		r.Rate = float64(r.Requests) / r.Duration.Seconds()
	}
	if len(r.Latencies) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(r.Latencies))
	at := func(q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
	sum := 0.0
	for _, v := range sorted {
		sum += v
	}
	r.Min, r.Max, r.Mean = sorted[0], sorted[len(sorted)-1], sum/float64(len(sorted))
	r.P50, r.P90, r.P99 = at(0.5), at(0.9), at(0.99)
}
