// Package record begins and concludes runs, whatever measures them: it gathers their trials, writes them to the run folder as they are
// finished, and says which are there already in a run that is resumed.
package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"netdelta/agent"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/workload"
)

// ErrNothing says that a study has nothing that could be measured here.
var ErrNothing = errors.New("nothing of this study can be measured here")

// Judge draws the conclusions of a run.
type Judge interface {
	Conclude(run *result.Run, trials []result.Trial)
}

// Strategy is a way of measuring with a loop of its own.
type Strategy interface {
	// Check says what is wrong with what it was asked for.
	Check() error
	// Head is what the record has before anything is measured: strategy, seed, cells.
	Head() result.Run
	// Measure adds what the record lacks. The error matches ErrNothing where nothing was measured.
	Measure(ctx context.Context, r *Record) error
}

// Record is a run under way.
type Record struct {
	Run    result.Run
	Trials []result.Trial
	folder *result.Folder
}

// Conduct carries a run out from its head to its conclusions, and returns the record. The head is written before measure begins, so
// that a run that is killed can be shown and resumed; all else is written however measure ends. An interruption (the end of ctx) is no
// error: Run.Ended says it, unless measure has set how the run ended. Without a folder and a judge the record is in memory only.
func Conduct(ctx context.Context, run result.Run, folder *result.Folder, judge Judge, measure func(context.Context, *Record) error) (*Record, error) {
	r := &Record{Run: run, folder: folder}
	r.Run.Schema, r.Run.Ended = result.Schema, plan.Running
	if r.Run.Started.IsZero() {
		r.Run.Started = time.Now()
	}
	if folder != nil {
		r.Trials = folder.Contents.Trials
		if err := folder.WriteResult(r.Run); err != nil {
			return r, err
		}
	}
	err := measure(ctx, r)
	if ctx.Err() != nil {
		err = withoutCancellation(err)
	}
	switch {
	case r.Run.Ended != plan.Running:
	case err != nil:
		r.Run.Ended = plan.EndedFailed
	case ctx.Err() != nil:
		r.Run.Ended = plan.EndedInterrupted
	default:
		r.Run.Ended = plan.EndedBuilds
	}
	if err == nil && ctx.Err() == nil && !slices.ContainsFunc(r.Trials, result.Trial.Measured) {
		r.Run.Ended = plan.EndedNothing
	}
	r.Run.Finished = time.Now()
	if judge != nil {
		judge.Conclude(&r.Run, r.Trials)
	}
	if folder == nil {
		return r, err
	}
	return r, errors.Join(err, folder.WriteEnvironment(r.Run.Environment), folder.WriteResult(r.Run))
}

// withoutCancellation drops errors that only say that the run was interrupted.
func withoutCancellation(err error) error {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var left []error
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			left = append(left, withoutCancellation(e))
		}
	}
	return errors.Join(left...)
}

// Keep keeps a finished trial.
func (r *Record) Keep(t result.Trial) error {
	r.Trials = append(r.Trials, t)
	if r.folder == nil {
		return nil
	}
	return r.folder.Append(t)
}

// Add completes a finished trial of a cell whose ends are not pinned, and keeps it.
func (r *Record) Add(cell result.Cell, t result.Trial) error {
	t.Schema, t.Cell, t.Role, t.Finished, t.ClientCPU, t.ServerCPU = result.Schema, cell.ID, cell.Role, time.Now(), -1, -1
	return r.Keep(t)
}

// Of counts the trials of a cell.
func (r *Record) Of(cell string) int {
	n := 0
	for _, t := range r.Trials {
		if t.Cell == cell {
			n++
		}
	}
	return n
}

// hasBuild says whether any cell was measured in a build.
func (r *Record) hasBuild(build int) bool {
	return slices.ContainsFunc(r.Trials, func(t result.Trial) bool { return t.Build == build })
}

// Cells makes the cells of networks under one load: the first is the baseline, and has an A/A control where one is asked for.
func Cells(networks []string, workload string, p result.Params, control bool) []result.Cell {
	var all []result.Cell
	add := func(network string, role result.Role) {
		id := network + "/" + workload
		if role == result.RoleControl {
			id += "/twin"
		}
		all = append(all, result.Cell{
			ID: id, Network: network, Placement: result.CrossNode, Path: "pod", Workload: workload, Params: p, Role: role,
		})
	}
	add(networks[0], result.RoleBaseline)
	if control {
		add(networks[0], result.RoleControl)
	}
	for _, n := range networks[1:] {
		add(n, result.RoleCell)
	}
	return all
}

// Load is one load that a strategy puts on several networks.
type Load struct {
	// Program is how to start the agent in pods.
	Program  agent.Program
	Workload workload.Workload
	Params   result.Params
	Networks []string
	// Builds is how often everything is set up anew.
	Builds int
	// Burst is how long is measured each time, after Warmup.
	Burst, Warmup time.Duration
	Seed          uint64
	// Log is told what happens, in lines without an end; it may be nil.
	Log func(line string)
}

// CheckLoad says what is wrong with a load. Its servers and clients must be netdelta's own.
func (l Load) CheckLoad() error {
	switch w := l.Workload; {
	case len(l.Networks) == 0:
		return errors.New("name a network to measure")
	case l.Builds < 1:
		return fmt.Errorf("%d builds: need at least 1", l.Builds)
	case l.Burst <= 0 || l.Warmup < 0:
		return fmt.Errorf("bursts of %v after %v: need a burst that lasts", l.Burst, l.Warmup)
	case w.Serve == nil || w.Dial == nil || len(w.Demands(l.Params).Programs) > 0:
		return fmt.Errorf("workload %s needs programs of others, which are not in each pod: take tcp-rr, udp-rr, tcp-stream or udp-stream", w.Name)
	case w.Check != nil:
		return w.Check(l.Params)
	}
	return nil
}

// BuildsOf are the builds of the load that a record gets.
func (l Load) BuildsOf(r *Record) Builds {
	return Builds{Record: r, Count: l.Builds, Seed: l.Seed, Log: l.Log}
}

// Study is the study file of a strategy that has a verb of its own: the verb's options, and claims.
type Study struct {
	// Name becomes part of the run folder's name.
	Name     string `yaml:"study"`
	Strategy string `yaml:"strategy"`
	Question string `yaml:"question,omitempty"`
	// Options are flags of the verb by their names. A value is a scalar or a list of scalars.
	Options map[string]yaml.Node `yaml:"options,omitempty"`
	Claims  []study.Claim        `yaml:"claims,omitempty"`
}

// Parse reads and checks a study file of a strategy. Errors begin with the file's name.
func Parse(file, strategy string, data []byte) (Study, error) {
	var s Study
	if err := yaml.Load(data, &s, yaml.WithKnownFields()); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	if s.Strategy != strategy {
		return s, fmt.Errorf("%s: its strategy is %q, not %q; netdelta run takes a study without a strategy", file, s.Strategy, strategy)
	}
	if s.Name == "" || strings.ContainsAny(s.Name, "/\\ ") || s.Name[0] == '.' {
		return s, fmt.Errorf("%s: study %q: need a name without spaces and slashes", file, s.Name)
	}
	for i, c := range s.Claims {
		if c.ID == "" || c.Says == "" {
			return s, fmt.Errorf("%s: claim %d needs id, says and expect", file, i+1)
		}
		if slices.ContainsFunc(s.Claims[:i], func(o study.Claim) bool { return o.ID == c.ID }) {
			return s, fmt.Errorf("%s: claim %s is there twice", file, c.ID)
		}
		if _, err := study.ParseExpectation(c.Expect); err != nil {
			return s, fmt.Errorf("%s: claim %s: %w", file, c.ID, err)
		}
	}
	return s, nil
}

// Marshal writes the study as YAML that Parse reads.
func (s Study) Marshal() ([]byte, error) {
	data, err := yaml.Dump(s, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write study %s as YAML: %w", s.Name, err)
	}
	return data, nil
}

// Set gives an option its value: one text, or a list.
func (s *Study) Set(name string, list bool, values ...string) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, v := range values {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
	}
	if !list {
		n = n.Content[0]
	}
	if s.Options == nil {
		s.Options = map[string]yaml.Node{}
	}
	s.Options[name] = *n
}

// Values are the texts of an option's value, and whether it is a list.
func (s *Study) Values(name string) (values []string, list bool) {
	n := s.Options[name]
	if n.Kind != yaml.SequenceNode {
		return []string{n.Value}, false
	}
	for _, c := range n.Content {
		values = append(values, c.Value)
	}
	return values, true
}
