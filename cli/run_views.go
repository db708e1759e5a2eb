package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/result"
)

// What each run leaves in its folder for readers: a page for people, and metrics for Prometheus.
const (
	pageFile    = "report.html"
	metricsFile = "metrics.txt"
)

// writeViews writes the page and the metrics of a run that has just ended.
func (env *environment) writeViews(run result.Run, files *result.Files) error {
	trials, _, err := trialsOf(files, run)
	var view reported
	if err == nil {
		view, err = readReported(insight.Measured{Run: run, Trials: trials}, files)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", pageFile, err)
	}
	if err := writeView(files, metricsFile, func(w io.Writer) error { return writeMetrics(w, view) }); err != nil {
		return err
	}
	return env.writePage(files, func(w io.Writer) error { return writeHTML(w, view) })
}

// writePage writes the page of a run into its folder, and says where it is.
func (env *environment) writePage(files *result.Files, write func(io.Writer) error) error {
	if err := writeView(files, pageFile, write); err != nil {
		return err
	}
	fmt.Fprintf(env.err, "report: %s\n", ui.Clean(filepath.Join(files.Dir(), pageFile)))
	return nil
}

// writeView writes what can be computed again from the rest of a folder.
func writeView(files *result.Files, name string, write func(io.Writer) error) error {
	return explainWrite(files.Replace(name, 0o644, write))
}
