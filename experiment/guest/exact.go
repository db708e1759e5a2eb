package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/testbed/vm/wire"
	"netdelta/workload"
)

// Verb is the verb of the command line that does a job inside a guest, JobFile where it finds the job, and Line the serial line
// that its words go over.
const (
	Verb    = "guest-exact"
	JobFile = "/job.json"
	Line    = wire.ScriptDevice
)

// Job is what one guest whose clock counts instructions has to do. It has nothing of the host in it: two jobs of the same seed
// are the same to the last byte, and so is what comes of them.
type Job struct {
	experiment.ExactJob
	// Filtered are networks that get so many firewall rules in addition to what they are: a known change, for tests.
	Filtered map[string]int `json:"filtered,omitempty"`
	// Clock is the clock source that the guest must use, "" for any.
	Clock string `json:"clock,omitempty"`
}

// exactSettle is how long a new network and a new connection are left alone.
const exactSettle = 200 * time.Millisecond

// Exact does a job and tells the host of each trial, and of its end.
func Exact(ctx context.Context, job Job, networks []network.Network, workloads []workload.Workload, to *Writer) error {
	environment, err := exact(ctx, job, networks, workloads, to)
	end := End{Environment: environment}
	if err != nil {
		end.Error = err.Error()
	}
	return to.Send(Message{End: &end})
}

func exact(ctx context.Context, job Job, networks []network.Network, workloads []workload.Workload, to *Writer) (result.Environment, error) {
	about, err := machine.Describe(machine.Version())
	if err != nil {
		return about, err
	}
	if job.Clock != "" && about.Clock != job.Clock {
		return about, fmt.Errorf("the guest's clock is %s, not %s: it would not count instructions", about.Clock, job.Clock)
	}
	driver := lab.NewDriver(filtered(networks, job.Filtered))
	cells, err := experiment.Supported(ctx, job.Cells, driver)
	if err != nil {
		return about, err
	}
	var measured []result.Cell
	lacks := map[string]string{}
	for _, c := range cells {
		if c.Unsupported != "" {
			lacks[c.ID] = c.Unsupported
		} else {
			measured = append(measured, c)
		}
	}
	if err := to.Send(Message{Unsupported: lacks}); err != nil {
		return about, err
	}
	job.Cells = measured
	seen, err := experiment.MeasureExact(ctx, experiment.ExactConfig{
		ExactJob: job.ExactJob, Settle: exactSettle, Driver: driver, Workloads: workloads, CPU: 0,
	}, func(t result.Trial) error { return to.Send(Message{Trial: &t}) })
	about.Links, about.Sysctls = seen.Links, seen.Sysctls
	return about, err
}

// filtered puts rules into the networks that a test names, under their own names: a comparison of runs shows that they have changed.
func filtered(networks []network.Network, rules map[string]int) []network.Network {
	all := make([]network.Network, len(networks))
	for i, n := range networks {
		all[i] = n
		if count := rules[n.Name]; count > 0 {
			all[i] = network.Filtered(n, count)
			all[i].Name = n.Name
		}
	}
	return all
}

// ReadJob reads a job from a file.
func ReadJob(path string) (Job, error) {
	var job Job
	text, err := os.ReadFile(path)
	if err != nil {
		return job, fmt.Errorf("read the job: %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&job); err != nil {
		return job, fmt.Errorf("read the job in %s: %w", path, err)
	}
	return job, nil
}

// Seeds is an exact run: one guest for each seed, each of them a build.
type Seeds struct {
	// Run is the head of the record, with cells and Exact; the rest is filled in.
	Run result.Run
	// Job is what each guest does, with all cells that may be measured: also those that an earlier guest of a resumed run could
	// not, so that equal seeds do equal jobs. Its build and seed are filled in.
	Job Job
	// Guest runs a job in a guest of its own, and calls line with each line of messages.
	Guest func(ctx context.Context, job Job, line func([]byte) error) error
	// Parallel is how many guests run at a time.
	Parallel int
	Folder   *result.Folder
	Judge    experiment.Judge
	// Progress is told how many of the run's trials are finished. It must return at once.
	Progress func(done, of int)
}

// seedsRun is an exact run under way.
type seedsRun struct {
	Seeds

	mu   sync.Mutex
	run  *result.Run
	rec  *record.Record
	have map[string]bool // by trial
}

// Count carries the run out and returns its record, which it has also written to the run folder. A trial that fails is named in
// the record; an error means that some guest could not do its job, and even then the record holds what was measured. What a
// resumed run has is not asked for again: a guest whose trials are all there is not started.
func (s Seeds) Count(ctx context.Context) (result.Run, error) {
	s.Run.Cells = slices.Clone(s.Run.Cells)
	rec, err := record.Conduct(ctx, s.Run, s.Folder, s.Judge, func(ctx context.Context, rec *record.Record) error {
		r := &seedsRun{Seeds: s, run: &rec.Run, rec: rec, have: map[string]bool{}}
		for _, t := range rec.Trials {
			r.have[t.ID()] = true
		}
		if err := r.guests(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	return rec.Run, err
}

// guests runs those that have something to do.
func (r *seedsRun) guests(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(r.Parallel, 1))
	r.Progress(len(r.rec.Trials), r.total())
	for _, job := range r.jobs() { // decided before any guest changes what they are decided by
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return r.guest(ctx, job)
		})
	}
	return group.Wait()
}

// jobs are the builds that have something to do.
func (r *seedsRun) jobs() []Job {
	var jobs []Job
	for build, seed := range r.run.Exact.Seeds {
		if r.complete(build) {
			continue
		}
		job := r.Job
		job.Build, job.Seed = build, seed
		jobs = append(jobs, job)
	}
	return jobs
}

// complete says whether a build has all its trials. What a guest found unsupported has none.
func (r *seedsRun) complete(build int) bool {
	measured := plan.Measured(r.run.Cells)
	for _, c := range measured {
		if !r.have[result.Trial{Cell: c.ID, Build: build}.ID()] {
			return false
		}
	}
	return len(measured) > 0
}

// total is how many trials the run has when it is done.
func (r *seedsRun) total() int {
	return len(plan.Measured(r.run.Cells)) * len(r.run.Exact.Seeds)
}

// guest runs one to its end.
func (r *seedsRun) guest(ctx context.Context, job Job) error {
	var end *End
	err := r.Guest(ctx, job, func(line []byte) error {
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("read a message of the guest: %w: %.80q", err, line)
		}
		if m.End != nil {
			end = m.End
		}
		return r.take(m)
	})
	switch {
	case err != nil:
		return err
	case end == nil:
		return fmt.Errorf("the guest of seed %d ended before its job was done", job.Seed)
	case end.Error != "":
		return fmt.Errorf("the guest of seed %d: %s", job.Seed, end.Error)
	}
	return nil
}

// take notes what a guest says.
func (r *seedsRun) take(m Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.run.Cells {
		if why := m.Unsupported[c.ID]; why != "" && c.Unsupported == "" {
			r.run.Cells[i].Unsupported = why
		}
	}
	if m.End != nil && m.End.Environment.Kernel != "" {
		r.run.Environment = merged(m.End.Environment, r.Run.Environment)
	}
	if t := m.Trial; t != nil && !r.have[t.ID()] {
		if err := r.rec.Keep(*t); err != nil {
			return err
		}
		r.have[t.ID()] = true
		r.Progress(len(r.rec.Trials), r.total())
	}
	return nil
}

// merged is the environment inside a guest, with what the host knows of the guest.
func merged(inside, host result.Environment) result.Environment {
	inside.Virtual, inside.Versions = host.Virtual, host.Versions
	return inside
}
