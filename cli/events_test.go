package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"netdelta/experiment"
	"netdelta/report/live"
	"netdelta/report/reporttest"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/workload/catalogue"
)

// A run is told as events that conform to their schema: trials once, deltas after each build.
func TestEvents(t *testing.T) {
	run, trials := reporttest.Usual().Measure(t)
	var out bytes.Buffer
	e := live.NewEvents(&out)
	j := live.Judge{
		Judge: words.NewJudge(catalogue.Workloads()), Over: e.Finished,
		Tell: func(_ int, trials []result.Trial, deltas []result.Delta) { e.Judged(trials, deltas) },
	}
	e.Had(1)
	e.Started(run, "runs/x")
	e.Waiting("processor 1 is measured on by another run")
	each := len(run.Cells)
	for build := range 2 {
		e.Update(experiment.Status{Doing: experiment.SettingUp, Build: build + 1, Cells: each, Open: build - 1})
		for round := range 1000 {
			e.Update(experiment.Status{Doing: experiment.Measuring, Build: build + 1, Round: round + 1, Rounds: 1000, Cells: each, Open: build - 1})
		}
		j.Settled(run, trials[:each*(build+1)])
	}
	trials[2*each].Failed = "the agent was killed"
	j.Conclude(&run, trials[:2*each+1])
	e.Ended(run, errors.New("the disk is full"))
	if err := e.Err(); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for line := range bytes.Lines(out.Bytes()) {
		conforms(t, "event.schema.json", line)
		var event result.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, event.Event)
		switch {
		case event.Event == result.EventDeltas && len(event.Deltas) != each-2:
			t.Errorf("%d deltas, want %d", len(event.Deltas), each-2)
		case event.Event == result.EventRunEnded && (event.Error == "" || len(event.Summary) == 0 || len(event.Deltas) == 0):
			t.Errorf("the end says %s", line)
		}
	}
	trial, build := result.EventTrialFinished, []string{result.EventBuildBegun, result.EventProgress}
	want := slices.Concat([]string{result.EventRunStarted, result.EventWaiting}, build, slices.Repeat([]string{trial}, each-1), []string{result.EventDeltas},
		build, slices.Repeat([]string{trial}, each), []string{result.EventDeltas, trial, result.EventRunEnded})
	if !slices.Equal(kinds, want) {
		t.Errorf("events %v\nwant %v", kinds, want)
	}
}

// Where events can't be written the run goes on, and its end says why.
func TestEventsThatCannotBeWritten(t *testing.T) {
	e := live.NewEvents(reporttest.Full{})
	e.Waiting("x")
	if e.Err() == nil {
		t.Error("no error")
	}
	var none *live.Events
	none.Waiting("x")
	if none.Err() != nil {
		t.Error("no events fail")
	}
}

// A real run streams events, and nothing else, on standard output.
func TestRunAsEvents(t *testing.T) {
	u := rootUser(t)
	before := host(t)
	e := u.call(t, statusDone, "run", "--networks", "host,bridge", "--workloads", "tcp-rr", "--placement", "cross-node", "--builds", "2", "--rounds", "10",
		"--time-budget", "2m", "--format", "jsonl") // it ends after its builds, on a busy machine, too
	var kinds []string
	for line := range bytes.Lines([]byte(e.stdout)) {
		conforms(t, "event.schema.json", line)
		var event result.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, event.Event)
	}
	for kind, least := range map[string]int{
		result.EventRunStarted: 1, result.EventBuildBegun: 2, result.EventTrialFinished: 6, result.EventDeltas: 2, result.EventRunEnded: 1,
	} {
		if n := len(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k != kind })); n < least {
			t.Errorf("%d events %s, want %d", n, kind, least)
		}
	}
	if len(kinds) == 0 || kinds[0] != result.EventRunStarted || kinds[len(kinds)-1] != result.EventRunEnded {
		t.Errorf("events %v", kinds)
	}
	untouched(t, before)
}

func TestFormatsOfRuns(t *testing.T) {
	u := rootUser(t)
	u.call(t, statusUsage, "run", "--format", "yaml").says(t, "jsonl")
	u.call(t, statusUsage, "run", "--format", "jsonl", "--json").says(t, "--json", "one of them")
	u.call(t, statusUsage, "run", "--format", "jsonl", "--dry-run").says(t, "--dry-run")
}
