package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"netdelta/insight"
	"netdelta/result"
)

// What each run leaves in its folder for readers: a page for people, and metrics for Prometheus.
const (
	pageFile    = "report.html"
	metricsFile = "metrics.txt"
)

// writeViews writes the page and the metrics of a run that has just ended.
func (env *environment) writeViews(run result.Run, dir string) error {
	contents, err := result.LoadTrials(dir)
	var view reported
	if err == nil {
		view, err = readReported(insight.Measured{Run: run, Trials: contents.Trials}, dir)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", pageFile, err)
	}
	if err := replaceFile(filepath.Join(dir, metricsFile), func(w io.Writer) error { return writeMetrics(w, view) }); err != nil {
		return err
	}
	return env.writeReport(filepath.Join(dir, pageFile), func(w io.Writer) error { return writeHTML(w, view) })
}
