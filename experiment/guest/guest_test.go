package guest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	os.Exit(leak.Main(m))
}

// small is a study that takes a second or two.
func small() *study.Study {
	return &study.Study{
		Name: "small", Baseline: "host", Networks: []string{"host", "bridge"}, Placement: []result.Placement{result.CrossNode},
		Testbed:   study.Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: study.Link{MTU: 1500}},
		Workloads: []study.Workload{{Name: "tcp-rr"}},
		Design: study.Design{
			Burst: 2 * time.Millisecond, Builds: 6, Rounds: 3, Confidence: 0.95, Margin: 0.02, TimeBudget: time.Minute, Seed: 42,
		},
	}
}

// inGuest is a program that would run in a guest, in this process: its standard input and output are pipes.
type inGuest struct {
	io.Reader
	in   *os.File
	done chan error
	kill context.CancelFunc
}

func (p *inGuest) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p *inGuest) CloseWrite() error           { return p.in.Close() }
func (p *inGuest) Wait() error                 { return <-p.done }
func (p *inGuest) Kill() error                 { p.kill(); return nil }

// start runs a program with its standard input and output.
func start(t *testing.T, body func(ctx context.Context, in io.Reader, out io.Writer) error) *inGuest {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	inR, inW, err := os.Pipe() // which takes the request at once, as a guest's channel does
	if err != nil {
		t.Fatal(err)
	}
	outR, outW := io.Pipe()
	p := &inGuest{Reader: outR, in: inW, done: make(chan error, 1), kill: cancel}
	go func() {
		err := body(ctx, inR, outW)
		_, _ = outW.Close(), inW.Close() // who reads sees the end
		p.done <- err
	}()
	return p
}

// runs carries out what it is asked for with so many builds, as the program inside a guest does.
func runs(t *testing.T, builds int, watch func(experiment.Status)) *inGuest {
	t.Helper()
	require.Namespaces(t)
	return start(t, func(ctx context.Context, in io.Reader, out io.Writer) error {
		request, ctx, err := guest.ReadRequest(ctx, in)
		if err != nil {
			return err
		}
		driver := lab.NewDriver(network.Catalogue())
		p, err := experiment.Prepare(ctx, small(), driver, catalogue.Workloads())
		if err != nil {
			return err
		}
		p.FixBuilds(builds)
		c, err := experiment.Assemble(ctx, small(), p, driver, catalogue.Workloads())
		if err != nil {
			return err
		}
		c.Judge = words.NewJudge(catalogue.Workloads())
		if watch != nil {
			out = watched{out, watch}
		}
		return guest.Inside(ctx, request, c, guest.NewWriter(out))
	})
}

// watched sees each status on its way.
type watched struct {
	io.Writer
	watch func(experiment.Status)
}

func (w watched) Write(b []byte) (int, error) {
	var m guest.Message
	if json.Unmarshal(b, &m) == nil && m.Status != nil {
		w.watch(*m.Status)
	}
	return w.Writer.Write(b)
}

type nobody struct{}

func (nobody) Update(experiment.Status) {}

// outside is the host's side of a program, with a run folder in dir.
func outside(p testbed.GuestProgram, dir string, request guest.Request) guest.Outside {
	return guest.Outside{
		Request: request, Program: p, Progress: nobody{}, Judge: words.NewJudge(catalogue.Workloads()),
		Open: func(*result.Run) (*result.Folder, error) {
			if _, err := os.Stat(filepath.Join(dir, result.StudyFile)); err == nil {
				return result.Open(dir, nil)
			}
			return result.Create(dir, []byte(request.Study))
		},
		Complete: func(e result.Environment) result.Environment { e.Virtual = "a test"; return e },
	}
}

func closed(t *testing.T, f *result.Folder) {
	t.Helper()
	if f == nil {
		t.Fatal("the run did not begin")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func journal(t *testing.T, dir string) []result.Trial {
	t.Helper()
	c, err := result.LoadTrials(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c.Trials
}

// TestRunInAGuest: all trials are in the host's folder, the record is concluded there, and a resumed run goes on from it.
func TestRunInAGuest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	run, folder, err := outside(runs(t, 2, nil), dir, guest.Request{Study: "study: small\n"}).Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed(t, folder)
	if got := journal(t, dir); len(got) != 6 || run.Ended != plan.EndedBuilds || len(run.Deltas) == 0 || run.Environment.Virtual != "a test" {
		t.Fatalf("%d trials, ended %s, %d deltas, in %q", len(got), run.Ended, len(run.Deltas), run.Environment.Virtual)
	}
	old, err := result.Load(dir)
	if err != nil || len(old.Deltas) != len(run.Deltas) {
		t.Fatalf("%d deltas in the folder, %d in the record: %v", len(old.Deltas), len(run.Deltas), err)
	}
	request := guest.Request{Study: "study: small\n", Run: &old, Trials: journal(t, dir)}
	again, folder, err := outside(runs(t, 3, nil), dir, request).Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed(t, folder)
	got := journal(t, dir)
	if len(got) != 9 || got[8].Build != 2 || !again.Started.Equal(run.Started) {
		t.Errorf("%d trials after it was resumed, the last of build %d; started %v and %v", len(got), got[len(got)-1].Build, run.Started, again.Started)
	}
}

// TestInterruptedGuest: an interrupt here ends the run there in good order, and what was measured is kept.
func TestInterruptedGuest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	program := runs(t, 500, func(s experiment.Status) {
		if s.Build >= 2 {
			once.Do(cancel)
		}
	})
	dir := filepath.Join(t.TempDir(), "run")
	run, folder, err := outside(program, dir, guest.Request{Study: "study: small\n"}).Follow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, folder)
	if run.Ended != plan.EndedInterrupted || len(journal(t, dir)) < 3 {
		t.Errorf("ended %s with %d trials", run.Ended, len(journal(t, dir)))
	}
}

// TestGuestDies: what arrived is kept and shown, and the error says what the program said last.
func TestGuestDies(t *testing.T) {
	cells := plan.Expand(small())
	program := start(t, func(_ context.Context, in io.Reader, out io.Writer) error {
		to := guest.NewWriter(out)
		head := result.Run{Schema: result.Schema, Run: "small", Study: "small", Cells: cells, Confidence: 0.95, Margin: 0.02}
		trial := result.Trial{
			Schema: result.Schema, Cell: cells[0].ID, Role: cells[0].Role,
			Bursts: result.Bursts{Round: []int{0}, Start: []int64{0}, Duration: []int64{1}, P50: []float64{5}},
		}
		err := errors.Join(to.Send(guest.Message{Head: &head}), to.Send(guest.Message{Trial: &trial}))
		_, _ = io.ReadFull(in, make([]byte, 1))
		return errors.Join(err, errors.New("the guest panicked"))
	})
	dir := filepath.Join(t.TempDir(), "run")
	run, folder, err := outside(program, dir, guest.Request{Study: "study: small\n"}).Follow(t.Context())
	closed(t, folder)
	if err == nil || !strings.Contains(err.Error(), "the guest panicked") || run.Ended != plan.EndedFailed || len(journal(t, dir)) != 1 {
		t.Errorf("ended %s with %d trials: %v", run.Ended, len(journal(t, dir)), err)
	}
}

// TestGuestRefuses: a study that can't be run there makes no folder.
func TestGuestRefuses(t *testing.T) {
	program := start(t, func(_ context.Context, in io.Reader, out io.Writer) error {
		_, _ = io.ReadFull(in, make([]byte, 1))
		return guest.NewWriter(out).Send(guest.Message{End: &guest.End{Error: "the time budget is too small", Kind: guest.BadInput}})
	})
	dir := filepath.Join(t.TempDir(), "run")
	_, folder, err := outside(program, dir, guest.Request{Study: "study: small\n"}).Follow(t.Context())
	var refused *guest.InputError
	if !errors.As(err, &refused) || refused.Kind != guest.BadInput || folder != nil {
		t.Errorf("folder %v, %v", folder, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
}

// TestGarbledGuest: what is no message ends the run with a word on it.
func TestGarbledGuest(t *testing.T) {
	program := start(t, func(_ context.Context, in io.Reader, out io.Writer) error {
		_, _ = io.ReadFull(in, make([]byte, 1))
		_, err := io.WriteString(out, "Segmentation fault\n")
		return err
	})
	_, _, err := outside(program, filepath.Join(t.TempDir(), "run"), guest.Request{}).Follow(t.Context())
	if err == nil || !strings.Contains(err.Error(), "Segmentation fault") {
		t.Error(err)
	}
}
