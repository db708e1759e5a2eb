// Package imported makes a run of what other programs measured elsewhere: files of iperf3, sockperf, netperf, fio, sysbench, wrk and
// k6, each of a network that the user names. Their figures then go the way of native trials: deltas with intervals over
// replications, reports, comparisons of runs.
package imported

import (
	"cmp"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// Source is a network with the files that were measured on it.
type Source struct {
	Network string
	// Files are its replications: what the first of them measured is held against the first of the baseline's, and so on.
	Files []string
}

// Options say what files can't.
type Options struct {
	// Baseline is the network that the others are held against; "" is the first.
	Baseline string
	// Placement of the two ends; "" is cross-node.
	Placement result.Placement
	// Workload is what files measured that don't say it; "" refuses such files.
	Workload string
	InTurn   bool    // the networks were measured in turn: files are paired by their order
	SkipBad  bool    // a file that can't be read is named in a note, and left out
	Margin   float64 // that counts as no change, as a share; 0 is 2%
}

// Ended is result.Run.Ended of an imported run.
const Ended = "measured elsewhere"

// Run is what files contain: a run without deltas, and its trials.
type Run struct {
	Run    result.Run
	Trials []result.Trial
	Study  []byte // for the run folder: it says what was imported
	// LeftOut says of each file that was left out why.
	LeftOut []string
}

// maxFile is the largest file that is read.
const maxFile = 512 * unit.MiB

// ErrBaseline is the error of a baseline that no file is of.
var ErrBaseline = errors.New("no file is of the baseline")

// Read reads the files. An error begins with the file's name, and the line and column where the format has them; one line for
// each file that can't be read.
func Read(sources []Source, o Options) (Run, error) {
	if err := check(sources, &o); err != nil {
		return Run{}, err
	}
	b := builder{options: o, digest: fnv.New64a(), builds: map[placed]int{}, versions: map[string]string{}}
	var errs []error
	var leftOut []string
	for _, s := range sources {
		for _, file := range s.Files {
			err := b.file(s.Network, file)
			switch {
			case err != nil && o.SkipBad:
				why, _, _ := strings.Cut(err.Error(), "; known are ")
				leftOut = append(leftOut, why)
				b.notes = append(b.notes, "left out: "+why)
			case err != nil:
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Run{}, err
	}
	if !slices.ContainsFunc(b.cells, func(c result.Cell) bool { return c.Network == o.Baseline }) {
		return Run{}, fmt.Errorf("%w %s that could be read:\n%s", ErrBaseline, o.Baseline, strings.Join(b.notes, "\n"))
	}
	r := b.run(sources)
	r.LeftOut = leftOut
	return r, nil
}

// check refuses what makes no run, and fills in what was not said.
func check(sources []Source, o *Options) error {
	if len(sources) < 2 {
		return errors.New("there is one network: a delta takes two; name more, each as NETWORK=FILE")
	}
	for i, s := range sources {
		if why := study.NameProblem(s.Network); why != "" {
			return fmt.Errorf("network %+q: %s; %s", s.Network, why, study.NameFix)
		}
		if first := slices.IndexFunc(sources, func(a Source) bool { return a.Network == s.Network }); first < i {
			return fmt.Errorf("network %s is there twice; give all of its files at once, with commas between them", s.Network)
		}
	}
	o.Baseline, o.Placement = cmp.Or(o.Baseline, sources[0].Network), cmp.Or(o.Placement, result.CrossNode)
	o.Margin = cmp.Or(o.Margin, study.DefaultMargin)
	if !slices.ContainsFunc(sources, func(s Source) bool { return s.Network == o.Baseline }) {
		return fmt.Errorf("%w %s; name one of the networks, or give its files as %s=FILE", ErrBaseline, o.Baseline, o.Baseline)
	}
	return nil
}

// placed is a network in a setting.
type placed struct {
	network string
	setting result.Setting
}

// builder gathers what files measured.
type builder struct {
	options  Options
	digest   hash.Hash64 // of all files
	cells    []result.Cell
	trials   []result.Trial
	builds   map[placed]int
	notes    []string
	versions map[string]string
	first    time.Time
	last     time.Time
	measured time.Duration
}

// file adds what a file measured.
func (b *builder) file(network, name string) error {
	text, err := result.ReadFile(name, maxFile)
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(name)
	}
	if err != nil {
		return fmt.Errorf("read what was measured on %s: %w", network, err)
	}
	found, err := parse(text, b.options.Workload)
	if err != nil {
		return located(name, err)
	}
	_, _ = b.digest.Write(text) // a hash takes everything
	for _, m := range found {
		b.add(network, m, info.ModTime())
	}
	return nil
}

// add makes a trial of a measurement: the next build of its network in its setting.
func (b *builder) add(network string, m measured, written time.Time) {
	setting := result.Setting{Workload: m.workload, Params: m.params, Placement: b.options.Placement}
	at := placed{network, setting}
	id := b.cell(at)
	t := m.trial
	t.Schema, t.Cell, t.Role, t.Build = result.Schema, id, b.role(network), b.builds[at]
	t.ClientCPU, t.ServerCPU = -1, -1
	length := time.Duration(t.Bursts.Duration[0])
	t.Started = m.started
	if t.Started.IsZero() { // then it was written when it ended
		t.Started = written.Add(-length)
	}
	t.Finished = t.Started.Add(length)
	b.measured += length
	b.builds[at]++
	b.trials = append(b.trials, t)
	if b.first.IsZero() || t.Started.Before(b.first) {
		b.first = t.Started
	}
	if t.Finished.After(b.last) {
		b.last = t.Finished
	}
	if m.version != "" {
		b.versions[m.tool] = plain(m.version)
	}
	if m.note != "" && !slices.Contains(b.notes, m.note) {
		b.notes = append(b.notes, m.note)
	}
}

func (b *builder) role(network string) result.Role {
	if network == b.options.Baseline {
		return result.RoleBaseline
	}
	return result.RoleCell
}

// cell is the name of a network's cell in a setting, which is added when it is first met.
func (b *builder) cell(at placed) string {
	for _, c := range b.cells {
		if c.Network == at.network && c.Setting() == at.setting {
			return c.ID
		}
	}
	number := len(result.Settings(b.cells)) + 1
	for i, s := range result.Settings(b.cells) {
		if s == at.setting {
			number = i + 1
		}
	}
	c := result.Cell{
		ID: fmt.Sprintf("%s/%s/%s/%d", at.network, at.setting.Placement, at.setting.Workload, number), Network: at.network, Path: "pod",
		Placement: at.setting.Placement, Workload: at.setting.Workload, Params: at.setting.Params, Role: b.role(at.network),
	}
	b.cells = append(b.cells, c)
	return c.ID
}

// run closes the account.
func (b *builder) run(sources []Source) Run {
	text := b.study(sources)
	// Trials that are held against each other stand together, as in a journal of a native run.
	slices.SortStableFunc(b.trials, func(a, c result.Trial) int { return cmp.Compare(a.Build, c.Build) })
	how := "networks are compared as independent samples, so what drifted between them is taken for a difference"
	if b.options.InTurn {
		how = "files are paired by their order, as of networks that were measured in turn"
	}
	r := result.Run{
		Unpaired: !b.options.InTurn,
		Schema:   result.Schema, Study: result.Imported, Testbed: result.Imported, Seed: b.digest.Sum64() | 1,
		Question:   "What do files say that other programs measured elsewhere?",
		Confidence: study.DefaultConfidence, Margin: b.options.Margin, Ended: Ended,
		Started: b.first, Finished: b.last, Measured: b.measured, Cells: b.cells, Environment: result.Environment{Versions: b.versions},
		Notes: append([]string{
			"imported: measured by other programs, elsewhere. Which way the packets went nobody could prove, what else the machines did is unknown, " +
				"and " + how,
		}, b.warnings()...),
	}
	return Run{Run: r, Trials: b.trials, Study: text}
}

// versionMost is how long a version is that is kept as it is.
const versionMost = 64

// plain is a version as a file names it, without what could do harm where it is shown.
func plain(version string) string {
	kept := strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) || strings.ContainsRune("<>&\"'`", r) {
			return -1
		}
		return r
	}, version)
	return kept[:min(len(kept), versionMost)]
}

// warnings are what the reader must know of these files.
func (b *builder) warnings() []string {
	notes := b.notes
	for _, s := range result.Settings(b.cells) {
		base := b.builds[placed{b.options.Baseline, s}]
		for _, c := range b.cells {
			n := b.builds[placed{c.Network, s}]
			switch {
			case c.Setting() != s || c.Role == result.RoleBaseline || n == base || base > 0 && !b.options.InTurn:
			case base == 0:
				notes = append(notes, fmt.Sprintf("%s has no file of the load of %s: nothing can be held against it; is the program called with other options?", b.options.Baseline, c.ID))
			default: // paired by their order
				notes = append(notes, fmt.Sprintf("%s has %d files and the baseline %d: the last %d count for nothing", c.ID, n, base, int(math.Abs(float64(n-base)))))
			}
		}
	}
	return notes
}

// study says what was imported, in a form that can't be mistaken for a study to run.
func (b *builder) study(sources []Source) []byte {
	var s strings.Builder
	s.WriteString("# Measured elsewhere and imported: there is nothing here to run again.\nimported:\n")
	fmt.Fprintf(&s, "  baseline: %q\n  files:\n", b.options.Baseline)
	for _, source := range sources {
		fmt.Fprintf(&s, "    %q:\n", source.Network)
		for _, f := range source.Files {
			fmt.Fprintf(&s, "      - %q\n", f)
		}
	}
	return []byte(s.String())
}

// Rebase makes another network of an imported run the baseline. The figures have to be computed anew.
func Rebase(run *result.Run, baseline string) error {
	var networks []string
	for _, c := range run.Cells {
		networks = gather.Once(networks, c.Network)
	}
	if !slices.Contains(networks, baseline) {
		return fmt.Errorf("%w %s; the run has %s", ErrBaseline, baseline, strings.Join(networks, ", "))
	}
	run.Cells = slices.Clone(run.Cells)
	for i, c := range run.Cells {
		run.Cells[i].Role = result.RoleCell
		if c.Network == baseline {
			run.Cells[i].Role = result.RoleBaseline
		}
	}
	return nil
}
