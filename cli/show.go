package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/imported"
	"netdelta/experiment/plan"
	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/report/loopback"
	"netdelta/report/serve"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed/lab/rootless"
	"netdelta/workload"
)

func newShowCommand(env *environment) *cobra.Command {
	var o shown
	var exact, baseline string
	var failIf []string
	var request requestFlags
	cmd := &cobra.Command{
		Use:   "show [DIR]",
		Short: "Print the deltas of a run folder again",
		Long: `Print the deltas of a run folder again (default: the latest run), computed from its journal: also of a run that was killed or is still
under way.`,
		Example: `  netdelta show
  netdelta show -v runs/latency-20300102-030405`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			var err error
			if o.request, err = request.read(); err != nil {
				return err
			}
			if o.folder, err = runFolder(a); err != nil {
				return err
			}
			files, err := openRun(o.folder)
			if err != nil {
				return err
			}
			return errors.Join(env.show(files, o, exact, baseline, failIf), files.Close())
		},
	}
	cmd.Flags().StringVar(&exact, "exact", "", "`folder` of an exact run of the same study, to set beside this one")
	cmd.Flags().StringVar(&baseline, "baseline", "", "of an imported run: the `network` that the others are held against")
	cmd.Flags().BoolVar(&o.pairs, "pairs", false, "print each two networks of a setting, held directly against one another")
	cmd.Flags().StringArrayVar(&failIf, "fail-if", nil, failIfUsage)
	cmd.Flags().BoolVar(&o.json, "json", false, "print result.json")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print what the figures rest on, each claim and all advice")
	request.add(cmd.Flags())
	return cmd
}

// show prints a run folder that is open.
func (env *environment) show(files *result.Files, o shown, exact, baseline string, failIf []string) error {
	defer env.frugal()()
	m, err := env.reloadWithExact(files, exact)
	if err != nil {
		return err
	}
	if baseline != "" {
		if err := env.rebase(&m, baseline); err != nil {
			return err
		}
	}
	if !o.json {
		if printed, err := env.printStrategy(m); err != nil || printed && len(m.Run.Claims) == 0 {
			return err
		}
	}
	goals, err := goalsOf(failIf)
	if err != nil {
		return err
	}
	m.Run.Goals = append(m.Run.Goals, study.Unjudged(goals)...)
	words.Goals(&m.Run)
	return errors.Join(env.print(m.Run, o), missed(m.Run))
}

// runFolder is the run folder that a verb's arguments name; without any it is the one of the latest run.
func runFolder(arguments []string) (string, error) {
	if len(arguments) > 0 {
		return arguments[0], nil
	}
	latest := filepath.Join(session.Runs, "latest")
	if _, err := os.Stat(latest); errors.Is(err, fs.ErrNotExist) {
		return "", usageError{fmt.Errorf("there is no run in %s yet: name a run folder, or make one by netdelta run", session.Runs)}
	}
	return latest, nil
}

// reload takes a run's frame from result.json and its figures from the journal, which is the truth. The path of a result.json
// stands for its folder. A folder without a journal gives the figures of its result.json, with a note and without trials.
func (env *environment) reload(path string) (insight.Measured, error) {
	files, err := openRun(path)
	if err != nil {
		return insight.Measured{}, err
	}
	m, err := env.reloadFrom(files)
	return m, errors.Join(err, files.Close())
}

// openRun opens the run folder that a path means.
func openRun(path string) (*result.Files, error) {
	files, err := result.OpenRun(folderOf(path))
	if err != nil {
		return nil, unreadable(err)
	}
	return files, nil
}

// readingMost is the memory from which on garbage is collected more often while a run is read and drawn: ten thousand cells in six builds
// then take less than 300 MB. Larger runs take what they need, and up to twice the processor time.
const readingMost = 250 << 20

// readingGarbage is how much garbage there may be below that memory, in percent of what is in use: collecting it takes processor time.
const readingGarbage = 400

// frugal has a run read and drawn in little memory until what it returns is called. What is set stays, be it by the user or by a call around
// this one.
func (env *environment) frugal() (asBefore func()) {
	before := debug.SetMemoryLimit(-1)
	if before != math.MaxInt64 || env.getenv("GOMEMLIMIT")+env.getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetMemoryLimit(readingMost)
	garbage := debug.SetGCPercent(readingGarbage)
	return func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(garbage)
	}
}

// reloadFrom reloads a run folder that is open. Its whole trials can be read for as long as it is.
func (env *environment) reloadFrom(files *result.Files) (insight.Measured, error) {
	defer env.frugal()()
	run, err := files.Record()
	if err != nil {
		return insight.Measured{}, unreadable(err)
	}
	m := insight.Measured{Run: run}
	var notes []string
	m.Trials, notes, err = trialsOf(files, run)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(run.Deltas)+len(run.Null) > 0:
		m.Notes = append(m.Notes, fmt.Sprintf("%s is missing: the figures are those that %s was left with", result.TrialsFile, result.ResultFile))
		m.Run.Notes = append(m.Run.Notes, m.Notes...)
		m.Run.Bind(workload.Parameters(env.workloads))
		return m, nil
	case err != nil:
		return insight.Measured{}, unreadable(err)
	}
	m.Notes = append(m.Notes, notes...)
	m.Run.Notes = append(m.Run.Notes, m.Notes...)
	words.NewJudge(env.workloads).ConcludeFrom(&m.Run, m.Trials)
	return m, nil
}

// trialsOf reads the journal of a run, and what its reader must be told of it. After an error there are no trials.
func trialsOf(files *result.Files, run result.Run) (*insight.Summaries, []string, error) {
	var trials insight.Summaries
	stored, err := files.Stored(trials.Add)
	if err != nil {
		return insight.Summarize(result.List(nil)), nil, err
	}
	trials.Trials = stored
	return &trials, stored.Notes(run), nil
}

// rebase holds the networks of an imported run against another of them.
func (env *environment) rebase(m *insight.Measured, baseline string) error {
	if m.Run.Testbed != result.Imported {
		return usageError{fmt.Errorf("--baseline %s: only an imported run can have another baseline than it was measured with; show --pairs holds each two networks against one another", baseline)}
	}
	if err := imported.Rebase(&m.Run, baseline); err != nil {
		return usageError{fmt.Errorf("--baseline: %w", err)}
	}
	words.NewJudge(env.workloads).ConcludeFrom(&m.Run, m.Trials)
	return nil
}

// folderOf is the run folder that a path means.
func folderOf(path string) string {
	if filepath.Base(path) == result.ResultFile {
		return filepath.Dir(path)
	}
	return path
}

// unreadable gives an error of reading a run folder its exit status: bad usage for what is no run, nothing measured for a run
// that was cut off before it had anything to read.
func unreadable(err error) error {
	switch {
	case errors.Is(err, result.ErrNoRun):
		return withStatus(exitUsage, err)
	case errors.Is(err, fs.ErrNotExist):
		return withStatus(exitNothing, err)
	}
	return err
}

// reloadWithExact is reloadFrom, and adds a comparison with an exact run if one is named.
func (env *environment) reloadWithExact(files *result.Files, exact string) (insight.Measured, error) {
	m, err := env.reloadFrom(files)
	if err != nil || exact == "" {
		return m, err
	}
	other, err := env.reload(exact)
	if err != nil {
		return m, err
	}
	beside, err := insight.CompareExact(m.Run, other.Run)
	if err != nil {
		return m, usageError{fmt.Errorf("--exact: %w", err)}
	}
	m.Run.ExactComparison = &beside
	return m, nil
}

func newServeCommand(env *environment) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Show the runs of a folder in a browser of this machine",
		Long: `Show the runs of a folder, by default ./runs, in a browser of this machine: a list with the course of each study over time, the
page of each run (live while it is under way), and what changed between two. It reads and changes nothing, answers at a
loopback address alone, and ends on Ctrl-C.`,
		Example: `  netdelta serve
  netdelta serve /srv/nightly --listen 127.0.0.1:8080`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			dir := session.Runs
			if len(a) > 0 {
				dir = a[0]
			}
			return env.serve(cmd.Context(), dir, address)
		},
	}
	cmd.Flags().StringVar(&address, "listen", "127.0.0.1:0", "loopback address and port; port 0 is any that is free")
	return cmd
}

// serve answers until the context ends.
func (env *environment) serve(ctx context.Context, dir, address string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("serve: %s is no folder of runs; netdelta run makes runs in ./runs", dir)}
	}
	if err := checkListen("--listen", address); err != nil {
		return err
	}
	listener, err := listen(ctx, "--listen", address)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil { // by which name it is seen from a browser
		return errors.Join(err, listener.Close())
	}
	runs := serve.Runs{Dir: dir, Page: env.servePage, Compare: env.serveComparison}
	stop := loopback.Serve(listener, runs.Handler(), time.Minute)
	fmt.Fprintf(env.out, "the runs in %s: http://%s/\n", dir, listener.Addr())
	<-ctx.Done()
	return stop()
}

// servePage writes the page of a run folder as its journal is now.
func (env *environment) servePage(w io.Writer, folder string) (underWay bool, err error) {
	defer env.frugal()()
	files, err := openRun(folder)
	if err != nil {
		return false, err
	}
	m, err := env.reloadFrom(files)
	var r reported
	if err == nil {
		r, err = readReported(m, files)
	}
	if err == nil {
		err = writeHTML(w, r)
	}
	return m.Run.Ended == plan.Running, errors.Join(err, files.Close())
}

// serveComparison says what changed between two run folders.
func (env *environment) serveComparison(before, after string) (result.Comparison, error) {
	c, err := env.compared(before, after, insight.Comparing{})
	if _, nothing := errors.AsType[*exitError](err); nothing || isUsage(err) {
		return result.Comparison{Says: err.Error()}, nil // the two can't be compared, which is an answer
	}
	return c, err
}

// checkListen refuses an address that others could reach: what is served has no lock of its own.
func checkListen(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err != nil:
		return usageError{fmt.Errorf("%s: %q is no address; write 127.0.0.1:PORT", flag, address)}
	case !loopback.Is(host):
		return usageError{fmt.Errorf("%s: %s can be reached from other machines, and everyone who reaches it reads all; write 127.0.0.1:%s, and let a "+
			"proxy that asks for a password lead there", flag, address, port)}
	}
	return nil
}

// checkMetrics refuses metrics where there are none. Exact says that instructions are counted, in guests that have no metrics.
func checkMetrics(address string, exact bool) error {
	if exact {
		return usageError{errors.New("--metrics-listen has no meaning with --exact: there is nothing to see before the end")}
	}
	return checkListen(metricsFlag, address)
}

// metricsFlag is the flag of the address of a run's metrics.
const metricsFlag = "--metrics-listen"

// listenForMetrics opens the socket that metrics are asked for at; there is none for "".
func listenForMetrics(ctx context.Context, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	if _, entered := rootless.Entered(); entered {
		return nil, errors.New(metricsFlag + ": a lab of an ordinary user has a loopback of its own, which no other program reaches; run as root, or read " +
			metricsFile + " in the run folder at the end")
	}
	return listen(ctx, metricsFlag, address)
}

// listen opens the socket of an address that a flag gave.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; choose another port, or 0 for any that is free", flag, err)
	}
	return listener, nil
}
