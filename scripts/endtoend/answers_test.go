package endtoend

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// answers is what scripts read of `netdelta run --json`, by the names that are promised to them.
type answers struct {
	Schema json.RawMessage `json:"schema"`
	Run    string          `json:"run"`
	Seed   json.RawMessage `json:"seed"`
	Deltas []delta         `json:"deltas"`
	Null   []delta         `json:"null"`
	Claims []struct {
		Verdict string `json:"verdict"`
	} `json:"claims"`
}

type delta struct {
	Network  string   `json:"network"`
	Workload string   `json:"workload"`
	Baseline string   `json:"baseline"`
	Metric   string   `json:"metric"`
	Ratio    *float64 `json:"ratio"`
	Low      *float64 `json:"ratio_low"`
	High     *float64 `json:"ratio_high"`
	// Loss has no ratio where the baseline loses nothing; its interval is one of the difference.
	DifferenceLow  *float64 `json:"difference_low"`
	DifferenceHigh *float64 `json:"difference_high"`
	Verdict        string   `json:"verdict"`
}

// read takes the one document that a run prints, and says what is wrong with it.
func read(text []byte) (answers, error) {
	var a answers
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("standard output is not one JSON document: %w", err)
	}
	if len(a.Schema) == 0 || a.Run == "" || len(a.Seed) == 0 {
		return a, errors.New("the document lacks schema, run or seed")
	}
	if len(a.Deltas) == 0 || len(a.Null) == 0 {
		return a, fmt.Errorf("the document has %d deltas and %d null checks", len(a.Deltas), len(a.Null))
	}
	for _, d := range slices.Concat(a.Deltas, a.Null) {
		if err := d.check(); err != nil {
			return a, fmt.Errorf("delta of %s against %s, %s: %w", d.Network, d.Baseline, d.Metric, err)
		}
	}
	return a, nil
}

func (d delta) check() error {
	if !slices.Contains([]string{"slower", "faster", "same", "unresolved"}, d.Verdict) {
		return fmt.Errorf("verdict %q", d.Verdict)
	}
	ratio, difference := d.interval(), d.DifferenceLow != nil && d.DifferenceHigh != nil
	if ratio && (d.Ratio == nil || *d.Low > *d.Ratio || *d.Ratio > *d.High || *d.Low <= 0) {
		return errors.New("the interval does not hold the ratio")
	}
	if difference && *d.DifferenceLow > *d.DifferenceHigh {
		return errors.New("the interval of the difference is the wrong way round")
	}
	if !ratio && !difference && d.Verdict != "unresolved" {
		return fmt.Errorf("the verdict %q without an interval", d.Verdict)
	}
	return nil
}

func (d delta) interval() bool { return d.Low != nil && d.High != nil }

// networks are those with an interval for the median.
func (a answers) networks() []string {
	var names []string
	for _, d := range a.Deltas {
		if d.Metric == "p50" && d.interval() && !slices.Contains(names, d.Network) {
			names = append(names, d.Network)
		}
	}
	return names
}
