package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"netdelta/experiment/study"
	"netdelta/insight"
	where "netdelta/insight/hops"
	"netdelta/internal/suggest"
	"netdelta/report/annotations"
	"netdelta/report/benchfmt"
	"netdelta/report/csv"
	"netdelta/report/flame"
	"netdelta/report/html"
	"netdelta/report/junit"
	"netdelta/report/markdown"
	"netdelta/report/openmetrics"
	"netdelta/report/parquet"
	"netdelta/report/rows"
	"netdelta/report/strategies"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// reported is what a report is made of.
type reported struct {
	insight.Measured
	study []byte      // as run, nil if it is not there
	table string      // of package rows
	hops  []where.Way // that were traced, if any
	flame *flame.Summary
}

// readReported adds to a run what else its folder holds for reports.
func readReported(m insight.Measured, files *result.Files) (r reported, err error) {
	r.Measured = m
	if r.study, err = files.Study(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := loadView(files, hopsFile, "the hops of a run", &r.hops); err != nil {
		return r, err
	}
	return r, loadView(files, flameSummary, "what a flame graph says", &r.flame)
}

// reportFormat is a form that a run can be written in.
type reportFormat struct {
	name, about string
	page        bool // it is the page of the run folder when nothing else is said, and not for standard output
	binary      bool // no terminal can show it
	tables      bool // it holds one table of package rows
	write       func(w io.Writer, r reported) error
}

// reportFormats are all forms, the one that is meant when none is named first.
func reportFormats() []reportFormat {
	return []reportFormat{
		{
			name: "html", about: "one page that opens offline, by default report.html in the run folder", page: true,
			write: writeHTML,
		},
		{
			name: "md", about: "Markdown, for a pull request or a wiki",
			write: func(w io.Writer, r reported) error { return markdown.Write(w, r.Run.Complete()) },
		},
		{
			name: "csv", about: "one table, for a spreadsheet", tables: true,
			write: func(w io.Writer, r reported) error { return csv.Write(w, r.Run, r.Trials, r.table) },
		},
		{
			name: "parquet", about: "one table with its types, for DuckDB, pandas and the like", binary: true, tables: true,
			write: func(w io.Writer, r reported) error { return parquet.Write(w, r.Run, r.Trials, r.table) },
		},
		{
			name: "benchfmt", about: "a line for each trial, for benchstat",
			write: func(w io.Writer, r reported) error { return benchfmt.Write(w, r.Run, r.Trials) },
		},
		{
			name: "openmetrics", about: "metrics, for Prometheus and its kin; each run leaves them in " + metricsFile,
			write: writeMetrics,
		},
		{
			name: "junit", about: "checks, claims and goals as test cases, for a server of continuous integration",
			write: func(w io.Writer, r reported) error { return junit.Write(w, r.Run, r.Trials) },
		},
		{
			name: "github", about: "goals as annotations, lines that GitHub, Gitea and Forgejo show with the change",
			write: func(w io.Writer, r reported) error { return annotations.Write(w, r.Run) },
		},
		{
			name: "json", about: "result.json, computed anew",
			write: func(w io.Writer, r reported) error { return writeJSON(w, r.Run.Complete()) },
		},
	}
}

// writeHTML writes the page of a run.
func writeHTML(w io.Writer, r reported) error {
	options := []html.Option{html.WithStudy(r.study), html.WithHops(r.hops), html.WithFlame(r.flame)}
	view, err := strategies.Of(r.Measured)
	if err != nil {
		return err
	}
	if view != nil {
		part, err := view.Part()
		if err != nil {
			return err
		}
		options = append(options, part)
	}
	return html.Write(w, r.Run.Complete(), r.Trials, options...)
}

// writeMetrics writes the metrics of a run that has ended.
func writeMetrics(w io.Writer, r reported) error {
	return openmetrics.Write(w, openmetrics.Snapshot{Run: r.Run, Trials: r.Trials})
}

// writeJSON writes a document with its lines indented.
func writeJSON(w io.Writer, document any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(document)
}

// reportOptions are the flags of report.
type reportOptions struct {
	format, table, out, exact string
	failIf                    []string
}

func newReportCommand(env *environment) *cobra.Command {
	formats := reportFormats()
	var names []string
	about := ""
	for _, f := range formats {
		names = append(names, f.name)
		about += fmt.Sprintf("  %-11s %s\n", f.name, f.about)
	}
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report [DIR]",
		Short: "Write the report of a run folder: HTML, Markdown, CSV, Parquet ...",
		Long: `Write the figures of a run folder (default: the latest run) for other readers and other programs, computed from its journal.

FORMATS
` + about + `
EXIT STATUS
  0    done
  1    the folder can't be read, or the report not written
  2    bad usage, or no run folder
  3    the run was cut off before anything was measured
  4    a goal failed (of the study, or --fail-if)`,
		Example: `  netdelta report runs/latest
  netdelta report runs/latest --format md | gh pr comment -F -
  netdelta report runs/latest --format csv --what bursts --out bursts.csv
  netdelta report runs/latest --format junit --out junit.xml
  netdelta report runs/native --exact runs/exact --format md`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			format, err := o.check(formats, cmd.Flags().Changed("what"))
			if err != nil {
				return usageError{err}
			}
			dir, err := runFolder(a)
			if err != nil {
				return err
			}
			return env.report(dir, format, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", formats[0].name, strings.Join(names, ", "))
	f.StringVar(&o.table, "what", rows.Tables()[0], "the table of a csv or parquet file: "+strings.Join(rows.Tables(), ", "))
	f.StringVar(&o.out, "out", "", "file to write, - for standard output")
	f.StringVar(&o.exact, "exact", "", "`folder` of an exact run of the same study, to set beside this one (html, md, json)")
	f.StringArrayVar(&o.failIf, "fail-if", nil, failIfUsage)
	complete(cmd, "format", names)
	complete(cmd, "what", rows.Tables())
	return cmd
}

// complete lets the shell complete a flag from a list.
func complete(cmd *cobra.Command, flag string, values []string) {
	// The only error is a flag that is not there, which the tests of the completion would show.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// check finds the format that is meant.
func (o reportOptions) check(formats []reportFormat, tableGiven bool) (reportFormat, error) {
	var names, tables []string
	for _, f := range formats {
		names = append(names, f.name)
		if f.tables {
			tables = append(tables, f.name)
		}
	}
	if err := oneOf("--format", o.format, names); err != nil {
		return reportFormat{}, err
	}
	format := formats[slices.Index(names, o.format)]
	if tableGiven && !format.tables {
		return reportFormat{}, fmt.Errorf("--what chooses the table of %s; %s holds the whole run", strings.Join(tables, " or "), o.format)
	}
	return format, oneOf("--what", o.table, rows.Tables())
}

// oneOf refuses a flag's value that is not in a list.
func oneOf(flag, value string, list []string) error {
	if slices.Contains(list, value) {
		return nil
	}
	if near, ok := suggest.Nearest(value, list); ok {
		return fmt.Errorf("%s: unknown %q; did you mean %q?", flag, value, near)
	}
	return fmt.Errorf("%s: unknown %q; known are %s", flag, value, strings.Join(list, ", "))
}

// report writes a run folder's figures in one format.
func (env *environment) report(dir string, format reportFormat, o reportOptions) error {
	if format.binary && (o.out == "" || o.out == "-") && env.onTerminal() {
		return usageError{errors.New("a parquet file is not for a terminal: name a file with --out, or pipe it to a program")}
	}
	files, err := openRun(dir)
	if err != nil {
		return err
	}
	return errors.Join(env.reportFrom(files, format, o), files.Close())
}

// reportFrom writes the figures. A report that is asked for goals ends with their status.
func (env *environment) reportFrom(files *result.Files, format reportFormat, o reportOptions) error {
	defer env.frugal()()
	goals, err := goalsOf(o.failIf)
	if err != nil {
		return err
	}
	m, err := env.reloadWithExact(files, o.exact)
	if err != nil {
		return err
	}
	m.Run.Goals = append(m.Run.Goals, study.Unjudged(goals)...)
	words.Goals(&m.Run)
	r, err := readReported(m, files)
	if err != nil {
		return err
	}
	r.table = o.table
	write := func(w io.Writer) error { return format.write(w, r) }
	switch {
	case o.out == "-", o.out == "" && !format.page:
		err = write(env.out)
	case o.out == "":
		err = env.writePage(files, write)
	default:
		if err = replaceFile(o.out, write); err == nil {
			fmt.Fprintf(env.err, "report: %s\n", ui.Clean(o.out))
		}
	}
	if err != nil || len(goals) == 0 {
		return err
	}
	return missed(m.Run)
}

// onTerminal says whether standard output is a terminal.
func (env *environment) onTerminal() bool {
	file, ok := env.terminal.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

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
