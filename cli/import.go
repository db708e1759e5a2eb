package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/imported"
	"netdelta/experiment/session"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// importOptions are the flags of import.
type importOptions struct {
	baseline, placement, workload, margin, out string
	json, inTurn, skipBad                      bool
}

func newImportCommand(env *environment) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import NETWORK=FILE[,FILE]... NETWORK=FILE[,FILE]... | PATTERN",
		Short: "Make a run of what iperf3, fio, wrk and others measured elsewhere",
		Long: `Make a run folder of files that other programs have written: iperf3 (-J), sockperf (what it prints, or --full-log), netperf
(its tables, or -o and -k), fio (--output-format=json or json+), sysbench, wrk (with --latency) and k6 (a summary, or
--out json). Which program a file is of is told by its content; which network it was measured on, you say. A folder stands for all files
in it. Names may hold the network: {network} in a PATTERN stands for it. show, report and compare then work on the folder as on any
other, and show --baseline holds the networks against another of them.

The files of a network are its replications. An interval takes three of each, or more; with fewer, the table says how many. Networks are
compared as independent samples, unless --in-turn says that they were measured in turn: then the first file is held against the
first of the baseline, the second against the second, and what drifts over the day cancels. Tests of another load (another message
size, another number of connections) become a table of their own.

EXIT STATUS
  0    done
  1    failed
  2    bad usage, or a file that can't be read (with its line and column)
  3    no two files can be held against each other`,
		Example: `  netdelta import host=a.json,b.json vxlan=c.json,d.json
  netdelta import host=results/host/ vxlan=results/vxlan/ --skip-bad
  netdelta import --baseline metal 'results/{network}/run*.json'
  netdelta import --baseline metal metal=fio-*.json calico=calico/*.json --out runs/elsewhere`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error { return env.importFiles(a, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.baseline, "baseline", "", "network that the others are held against (default: the first)")
	f.StringVar(&o.placement, "placement", string(result.CrossNode), "where the two ends were: same-node or cross-node")
	f.StringVar(&o.workload, "workload", "", "workload of files that don't say it: tcp-rr, udp-rr, tcp-crr, tcp-stream or udp-stream")
	f.BoolVar(&o.inTurn, "in-turn", false, "networks were measured in turn: pair files by their order")
	f.BoolVar(&o.skipBad, "skip-bad", false, "name files that can't be read, and leave them out")
	f.StringVar(&o.margin, "margin", "2%", "change that counts as none")
	f.StringVar(&o.out, "out", "", "run folder to make (default: a new one in runs)")
	f.BoolVar(&o.json, "json", false, "print result.json")
	complete(cmd, "placement", []string{string(result.SameNode), string(result.CrossNode)})
	complete(cmd, "workload", rawWorkloads())
	return cmd
}

// rawWorkloads are those that a file may be of without saying it.
func rawWorkloads() []string {
	return []string{"tcp-rr", "udp-rr", "tcp-crr", "tcp-stream", "udp-stream"}
}

// check turns the flags into what they mean.
func (o importOptions) check() (imported.Options, error) {
	margin, err := parseMargin(o.margin)
	if err != nil {
		return imported.Options{}, fmt.Errorf("--margin: %w", err)
	}
	if err := oneOf("--placement", o.placement, []string{string(result.SameNode), string(result.CrossNode)}); err != nil {
		return imported.Options{}, err
	}
	if o.workload != "" {
		if err := oneOf("--workload", o.workload, rawWorkloads()); err != nil {
			return imported.Options{}, err
		}
	}
	return imported.Options{Baseline: o.baseline, Placement: result.Placement(o.placement), Workload: o.workload, Margin: margin, InTurn: o.inTurn, SkipBad: o.skipBad}, nil
}

// importFiles makes a run folder of files, prints the run and leaves its page.
func (env *environment) importFiles(args []string, o importOptions) error {
	options, err := o.check()
	if err != nil {
		return usageError{err}
	}
	files, err := sources(args)
	if err != nil {
		return usageError{err}
	}
	in, err := imported.Read(files, options)
	if err != nil {
		return withStatus(exitUsage, err)
	}
	for _, why := range in.LeftOut {
		fmt.Fprintf(env.err, "left out: %s\n", ui.Clean(why))
	}
	words.NewJudge(env.workloads).Conclude(&in.Run, in.Trials)
	if len(in.Run.Deltas) == 0 {
		return withStatus(exitNothing, fmt.Errorf("no file of another network has the load of a file of the baseline: nothing can be held against it\n%s",
			strings.Join(in.Run.Notes[1:], "\n")))
	}
	folder, err := kept(&in, o.out)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.err, "run: %s\n", ui.Clean(folder.Dir()))
	return errors.Join(env.writeViews(in.Run, folder.Files), env.print(in.Run, shown{json: o.json, folder: folder.Dir()}), folder.Close())
}

// kept writes the run folder of an import.
func kept(in *imported.Run, out string) (*result.Folder, error) {
	in.Run.Run = result.Imported + "-" + time.Now().UTC().Format("20060102-150405")
	if out == "" {
		var err error
		if out, err = session.FreshFolder(session.Runs, in.Run.Run); err != nil {
			return nil, err
		}
	}
	in.Run.Run = filepath.Base(filepath.Clean(out))
	folder, err := session.CreateFolder(out, in.Study)
	if err != nil {
		return nil, badInput(err)
	}
	for _, t := range in.Trials {
		err = errors.Join(err, folder.Append(t))
	}
	if err = errors.Join(err, folder.WriteEnvironment(in.Run.Environment), folder.WriteResult(in.Run)); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// resumable refuses to go on with a run that was imported, or that another verb measured.
func resumable(run result.Run, dir string) error {
	switch {
	case run.Testbed == result.Imported:
		return usageError{fmt.Errorf("%s was imported: there is nothing to go on with; import it again with more files", dir)}
	case run.Strategy != nil:
		return usageError{fmt.Errorf("%s is a run of netdelta %s: go on with it by netdelta %[2]s --resume", dir, run.Strategy.Name)}
	}
	return nil // whether it is a run's folder at all, its study tells
}

// namesNetwork stands for the network in a pattern of names.
const namesNetwork = "{network}"

// sources reads the arguments. The files of a network may also follow it one by one, as a shell leaves them where a pattern
// matched several.
func sources(args []string) ([]imported.Source, error) {
	var all []imported.Source
	for _, a := range args {
		if strings.Contains(a, namesNetwork) {
			found, err := named(a)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
			continue
		}
		network, files, given := strings.Cut(a, "=")
		if given && network != "" && !strings.ContainsAny(network, "/\\") {
			all = append(all, imported.Source{Network: network})
		} else {
			files = a
			if len(all) == 0 {
				return nil, fmt.Errorf("which network is %s of? write NETWORK=%s", a, a)
			}
		}
		last := &all[len(all)-1]
		for _, file := range strings.Split(files, ",") {
			found, err := matching(file)
			if err != nil {
				return nil, err
			}
			last.Files = append(last.Files, found...)
		}
	}
	return all, nil
}

// matching are the files of a name: a shell does not know the pattern after NETWORK= for one. A folder is all files in it.
func matching(file string) ([]string, error) {
	switch {
	case file == "":
		return nil, errors.New("a network has no file: write NETWORK=FILE, and commas without spaces between several")
	case !strings.ContainsAny(file, "*?["):
		return within(file)
	}
	names, err := filepath.Glob(strings.TrimRight(file, "/"))
	if err == nil && len(names) == 0 {
		err = errors.New("no file has such a name")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	slices.Sort(names)
	var all []string
	for _, name := range names {
		found, err := within(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// within are the files of a folder and of the folders in it, in the order of their names, but for hidden ones; of a file that file. A
// name that is not there is kept: opening it gives the error.
func within(name string) ([]string, error) {
	var all []string
	err := filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == name:
			all = append(all, name)
			return nil
		case err != nil:
			return err
		case path != name && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir():
			all = append(all, path)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the folder has no file")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the files of %s: %w", name, err)
	}
	return all, nil
}

// named are the files that a pattern matches, by the network in their names. The longest name counts: of calico-vxlan-1.json that is
// calico-vxlan for {network}-*.json.
func named(pattern string) ([]imported.Source, error) {
	names, err := matching(strings.ReplaceAll(pattern, namesNetwork, "*"))
	if err != nil {
		return nil, err
	}
	expression := regexp.QuoteMeta(filepath.Clean(pattern))
	for glob, meant := range map[string]string{regexp.QuoteMeta(namesNetwork): "([^/]+)", `\*`: "[^/]*", `\?`: "[^/]"} {
		expression = strings.ReplaceAll(expression, glob, meant)
	}
	read, err := regexp.Compile("^" + expression + "(/.*)?$")
	if err != nil || strings.ContainsAny(pattern, "[]") {
		return nil, fmt.Errorf("%s: a pattern with %s may hold * and ?, and nothing else", pattern, namesNetwork)
	}
	var all []imported.Source
	for _, name := range names {
		groups := read.FindStringSubmatch(filepath.Clean(name))
		if groups == nil {
			continue
		}
		network := groups[1]
		i := slices.IndexFunc(all, func(s imported.Source) bool { return s.Network == network })
		if i < 0 {
			i, all = len(all), append(all, imported.Source{Network: network})
		}
		all[i].Files = append(all[i].Files, name)
	}
	return all, nil
}
