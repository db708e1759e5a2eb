// Package openmetrics writes a run, finished or under way, in the OpenMetrics text format
// (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md), which Prometheus and its kin read.
//
// All figures are gauges in base units: seconds, bits per second, shares of one. Labels are those by which a network is asked for
// (study, network, baseline, placement, path, workload, load), and the cell, which makes each series unique. The run's own name is
// a label of netdelta_run_info alone, so that the series of a night go on in those of the next.
package openmetrics

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/expfmt"

	"netdelta/result"
)

// ContentType is what an HTTP server says of the format.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// Progress is how far a run is that is under way.
type Progress struct {
	// Build and Round count from 1; Rounds is how many rounds the build is planned to have.
	Build, Round, Rounds int
	// Cells are measured in this build. Open is how many are not known well enough yet, -1 before the first build is done.
	Cells, Open     int
	Elapsed, Budget time.Duration
}

// Snapshot is what is known of a run.
type Snapshot struct {
	Run    result.Run
	Trials result.Trials
	// Progress is nil for a run that has ended.
	Progress *Progress
}

// Write writes all that is known, and the mark that ends the format.
func Write(w io.Writer, s Snapshot) error {
	p := newPage(s.Run.Study)
	p.head(s.Run)
	if s.Progress != nil {
		p.progress(*s.Progress)
	}
	p.deltas("delta", "a network against the baseline of the same rounds", s.Run.Deltas)
	p.deltas("null", "the baseline against its A/A control, which ought to be no difference", s.Run.Null)
	p.trials(s.Run, s.Trials)
	p.verdicts(s.Run)
	out := bufio.NewWriter(w)
	for _, f := range p.families {
		if _, err := expfmt.MetricFamilyToOpenMetrics(out, f); err != nil {
			return fmt.Errorf("write the metric %s: %w", f.GetName(), err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(out); err != nil {
		return fmt.Errorf("end the metrics: %w", err)
	}
	return out.Flush()
}
