package cli_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// conforms fails the test unless a document is as its schema in the repository says.
func conforms(t *testing.T, schema string, document []byte) {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "schema", schema))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatalf("not one JSON document: %v", err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Error(err)
	}
}

func decode(t *testing.T, text string) result.Run {
	t.Helper()
	var run result.Run
	if err := json.Unmarshal([]byte(text), &run); err != nil {
		t.Fatalf("not one JSON document: %v\n%s", err, text)
	}
	return run
}

// A whole run: what is on disk, what is printed where, and that show says the same again.
func TestRun(t *testing.T) {
	before := host(t)
	dir, ran, builds := wholeRun(t)
	untouched(t, before)

	conforms(t, "result.schema.json", []byte(ran.stdout))
	run := decode(t, ran.stdout)
	ran.says(t, "run folder: run")
	if strings.Contains(ran.stderr, "95% interval") || strings.Contains(ran.stderr, "verdict") { // the ranking as it forms is there
		t.Errorf("results are on standard error:\n%s", ran.stderr)
	}
	folder := filepath.Join(dir, "run")
	if got, want := entries(t, folder), []string{"environment.json", "metrics.txt", "report.html", "result.json", "study.yaml", "trials.count", "trials.jsonl"}; !slices.Equal(got, want) {
		t.Errorf("the run folder has %q, want %q", got, want)
	}
	for line := range strings.Lines(read(t, filepath.Join(folder, "trials.jsonl"))) {
		conforms(t, "trial.schema.json", []byte(line))
	}
	checkRounds(t, run, trials(t, folder), builds)
	checkEnvironment(t, read(t, filepath.Join(folder, "environment.json")))

	networks := map[string]bool{}
	for _, d := range run.Deltas {
		networks[d.Network] = true
		if d.Headline && (d.RatioLow == nil || *d.RatioLow > d.Ratio || *d.RatioHigh < d.Ratio) {
			t.Errorf("%s: the ratio %v is not in its interval", d.Cell, d.Ratio)
		}
	}
	if len(networks) != 2 || len(run.Null) == 0 || run.Seed != 7 || run.Study != "small" {
		t.Errorf("the record has deltas of %v, %d null checks, seed %d, study %q", networks, len(run.Null), run.Seed, run.Study)
	}

	again := decode(t, call(t, dir, statusDone, "show", "run", "--json").stdout)
	if diff := gocmp.Diff(run.Deltas, again.Deltas); diff != "" {
		t.Errorf("show has other deltas than run:\n%s", diff)
	}
	if diff := gocmp.Diff(run.Null, again.Null); diff != "" {
		t.Errorf("show has other null checks than run:\n%s", diff)
	}
	onDisk := decode(t, read(t, filepath.Join(folder, "result.json")))
	if diff := gocmp.Diff(run.Deltas, onDisk.Deltas); diff != "" {
		t.Errorf("result.json has other deltas than run:\n%s", diff)
	}
	shown := call(t, dir, statusDone, "show", "run").shows(t, "bridge", "macvlan", "host", "null check")
	if obeyed(shown.stdout) || obeyed(ran.stderr) {
		t.Error("what is printed where there is no terminal has bytes that one would obey")
	}
}

// checkRounds fails unless each round of each build measured each cell once: the baseline twice, in two set-ups.
func checkRounds(t *testing.T, run result.Run, trials []result.Trial, want int) {
	t.Helper()
	roles := map[string]result.Role{}
	for _, c := range run.Cells {
		roles[c.ID] = c.Role
	}
	type visit struct{ build, round int }
	visits := map[visit]map[string]int{}
	builds := map[int]bool{}
	for _, tr := range trials {
		if tr.Failed != "" || tr.Role != roles[tr.Cell] {
			t.Errorf("%s has the role %q; failed: %q", tr.ID(), tr.Role, tr.Failed)
		}
		builds[tr.Build] = true
		for _, r := range tr.Bursts.Round {
			v := visit{tr.Build, r}
			if visits[v] == nil {
				visits[v] = map[string]int{}
			}
			visits[v][tr.Cell]++
			visits[v][string(tr.Role)]++
		}
	}
	if len(builds) != want || len(visits) < 3*want {
		t.Errorf("%d rounds in %d builds, want at least %d in %d", len(visits), len(builds), 3*want, want)
	}
	for v, count := range visits {
		if count[string(result.RoleBaseline)] != 1 || count[string(result.RoleControl)] != 1 || count[string(result.RoleCell)] != 2 {
			t.Errorf("round %d of build %d visited %v", v.round, v.build, count)
		}
	}
}

func checkEnvironment(t *testing.T, text string) {
	t.Helper()
	var e result.Environment
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if e.Kernel == "" || e.Arch == "" || e.GoVersion == "" || e.Netdelta == "" || e.CPU.Model == "" || e.CPU.Count == 0 || e.Memory == 0 || e.Clock == "" {
		t.Errorf("the machine is not described: %+v", e)
	}
	seen := map[string]bool{}
	for _, l := range e.Links {
		seen[l.Network] = true
	}
	if !seen["bridge"] || !seen["macvlan"] || !seen["host"] || len(e.Sysctls) == 0 {
		t.Errorf("links of %v, %d settings of the kernel", seen, len(e.Sysctls))
	}
	if len(e.Measuring) == 0 || len(e.Controlling) == 0 {
		t.Errorf("measured on processors %v, controlled from %v", e.Measuring, e.Controlling)
	}
}

// orders gives, for each build and round in turn, the cells in the order in which they were visited.
func orders(trials []result.Trial) [][]string {
	type burst struct {
		build, round int
		start        int64
		cell         string
	}
	var all []burst
	for _, tr := range trials {
		for i, r := range tr.Bursts.Round {
			all = append(all, burst{tr.Build, r, tr.Bursts.Start[i], tr.Cell + string(tr.Role)})
		}
	}
	slices.SortFunc(all, func(a, b burst) int {
		return cmp.Or(cmp.Compare(a.build, b.build), cmp.Compare(a.round, b.round), cmp.Compare(a.start, b.start))
	})
	var found [][]string
	for i, b := range all {
		if i == 0 || b.build != all[i-1].build || b.round != all[i-1].round {
			found = append(found, nil)
		}
		found[len(found)-1] = append(found[len(found)-1], b.cell)
	}
	return found
}

// A run that may take as long as it needs ends when all is resolved or the time is over, and its record is as the schema
// says: on standard output, on disk, and when it is shown again.
func TestRunWithinBudget(t *testing.T) {
	require.Long(t)
	dir := labFolder(t)
	ran := call(t, dir, statusDone, "run", "small.yaml", "--time-budget", "3s", "--out", "run", "--json")
	conforms(t, "result.schema.json", []byte(ran.stdout))
	conforms(t, "result.schema.json", []byte(read(t, filepath.Join(dir, "run", "result.json"))))
	conforms(t, "result.schema.json", []byte(call(t, dir, statusDone, "show", "run", "--json").stdout))
	if run := decode(t, ran.stdout); run.Ended != "resolved" && run.Ended != "budget" {
		t.Errorf("the run ended %q", run.Ended)
	}
}

// The order of bursts is drawn anew for each round, from the seed.
func TestSeedGivesTheOrder(t *testing.T) {
	require.Long(t)
	dir := labFolder(t)
	measure := func(out, seed, builds string) map[int][][]string {
		call(t, dir, statusDone, "run", "small.yaml", "--builds", builds, "--rounds", "6", "--out", out, "--seed", seed, "--quiet", "--workloads", "tcp-crr")
		byBuild := map[int][]result.Trial{}
		for _, tr := range trials(t, filepath.Join(dir, out)) {
			byBuild[tr.Build] = append(byBuild[tr.Build], tr)
		}
		found := map[int][][]string{}
		for b, of := range byBuild {
			found[b] = orders(of)
		}
		return found
	}
	first, again, other := measure("first", "11", "2"), measure("again", "11", "2"), measure("other", "12", "1")
	distinct, differs := map[string]bool{}, false
	for build, rounds := range first {
		// A round that was disturbed is repeated, so the runs may have different numbers of them.
		for round := range min(len(rounds), len(again[build])) {
			if !slices.Equal(rounds[round], again[build][round]) {
				t.Errorf("build %d, round %d: the same seed gave %v and %v", build, round, rounds[round], again[build][round])
			}
		}
		for round := range min(len(rounds), len(other[build])) {
			differs = differs || !slices.Equal(rounds[round], other[build][round])
		}
		for _, cells := range rounds {
			distinct[strings.Join(cells, " ")] = true
		}
	}
	if len(distinct) < 6 {
		t.Errorf("only %d different orders in 12 rounds or more", len(distinct))
	}
	if !differs {
		t.Error("another seed gave the same orders")
	}
}

// A kernel that lacks a network says so, and the run goes on without it.
func TestUnsupportedNetwork(t *testing.T) {
	dir := labFolder(t)
	require.Need(t, "a kernel without ipvlan", lab.NewDriver(network.Catalogue()).Supports(t.Context(), testbed.Spec{Network: "ipvlan-l2", Family: result.IPv4}) != nil)
	ran := call(t, dir, statusDone, "run", "small.yaml", "--networks", "host,bridge,ipvlan-l2", "--builds", "3", "--out", "run")
	ran.shows(t, "bridge", "ipvlan-l2", "unsupported", "this kernel lacks")
	call(t, dir, statusDone, "show", "run", "-v").shows(t, "CONFIG_IPVLAN")
	run := decode(t, call(t, dir, statusDone, "show", "run", "--json").stdout)
	for _, c := range run.Cells {
		if lacking := c.Network == "ipvlan-l2"; lacking != (c.Unsupported != "") {
			t.Errorf("%s: unsupported %q", c.ID, c.Unsupported)
		}
	}
	nothing := call(t, dir, statusNothing, "run", "small.yaml", "--testbed", "lab", "--networks", "ipvlan-l2", "--baseline", "ipvlan-l2", "--out", "nothing")
	nothing.says(t, "ipvlan-l2 is unsupported", "CONFIG_IPVLAN")
	if nothing.stdout != "" || len(entries(t, filepath.Join(dir, "nothing"))) > 0 {
		t.Error("a run that measures nothing has printed results or made a folder")
	}
}

// The baseline alone is a run too: its noise.
func TestBaselineAlone(t *testing.T) {
	dir := labFolder(t)
	call(t, dir, statusDone, "run", "small.yaml", "--networks", "host", "--builds", "3", "--out", "run").shows(t, "null")
	if run := decode(t, call(t, dir, statusDone, "show", "run", "--json").stdout); len(run.Null) == 0 || len(run.Deltas) > 0 {
		t.Errorf("%d null checks and %d deltas of the baseline alone", len(run.Null), len(run.Deltas))
	}
}

// Colours are for terminals, and for those who want them.
func TestColours(t *testing.T) {
	dir, _, _ := wholeRun(t)
	for name, env := range map[string][]string{
		"no terminal": {"TERM=xterm-256color"}, "no colour": {"NO_COLOR=1", "TERM=xterm-256color"}, "dumb": {"TERM=dumb"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, dir, "show", "run")
			cmd.Env = append(os.Environ(), env...)
			if e := finish(t, cmd).want(t, statusDone); obeyed(e.stdout) || obeyed(e.stderr) {
				t.Errorf("escape bytes in %q%q", e.stdout, e.stderr)
			}
		})
	}
	for name, c := range map[string]struct {
		env    []string
		escape bool
	}{
		"terminal":                 {[]string{"TERM=xterm-256color", "NO_COLOR="}, true},
		"terminal without colour":  {[]string{"TERM=xterm-256color", "NO_COLOR=1"}, false},
		"terminal that knows none": {[]string{"TERM=dumb", "NO_COLOR="}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, dir, "show", "run")
			cmd.Env = append(os.Environ(), c.env...)
			if text := onTerminal(t, cmd); strings.Contains(text, "\x1b[") != c.escape || !strings.Contains(text, "macvlan") {
				t.Errorf("want escapes: %v, got %q", c.escape, text)
			}
		})
	}
}
