package experiment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// ground is a cluster that can be changed: a lab whose network "pod" is another one under each change. Under the change "slow"
// every packet meets thousands of rules, on the host's network too.
type ground struct {
	*lab.Driver
	mu      sync.Mutex
	state   string // the network that it is changed for
	said    []string
	held    bool   // by another run
	refuses string // the network for which no change can be made
	broken  string // the network under which no pod can be made: its agents end again and again
	forgets bool   // what is undone stays, once the cluster was measured as it was found
	beds    []testbed.Testbed
	stuck   int    // how many more times it can't be restored
	applied func() // called when a change is made
	closed  bool
	left    bool     // packets still go as the last change had it
	leaves  []string // what is found on nodes, once they are watched
	watched bool
}

func (g *ground) say(words ...any) {
	g.said = append(g.said, strings.TrimSpace(fmt.Sprintln(words...)))
}

func (g *ground) Supports(ctx context.Context, spec testbed.Spec) error {
	return g.Driver.Supports(ctx, g.meant(spec))
}

// meant is the lab's testbed that stands for one of the cluster's.
func (g *ground) meant(spec testbed.Spec) testbed.Spec {
	if spec.Network == "pod" {
		spec.Network = map[bool]string{false: "bridge", true: "vxlan"}[g.state == "vxlan-on" || g.left]
	}
	if g.state == "slow" {
		spec.Conditions.Policy, spec.Conditions.PolicyRules = result.PolicyIPTables, 3000
	}
	return spec
}

func (g *ground) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	g.mu.Lock()
	g.say("open", spec.Network, g.state)
	meant, broken := g.meant(spec), g.broken != "" && g.broken == g.state && spec.Network == "pod"
	g.mu.Unlock()
	if broken {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.say("close", g.state)
		return nil, errors.New("its pod got no network: the agent is in CrashLoopBackOff")
	}
	tb, err := g.Driver.Open(ctx, meant)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.beds = append(g.beds, tb)
	return &standing{tb.Instruments().Observer, g, sync.Once{}}, nil
}

// standing is a testbed that tells when it is gone.
type standing struct {
	testbed.Observer
	on   *ground
	once sync.Once
}

func (s *standing) Close() error {
	err := s.Observer.Close()
	s.once.Do(func() {
		s.on.mu.Lock()
		defer s.on.mu.Unlock()
		s.on.say("close", s.on.state)
	})
	return err
}

func (g *ground) Apply(ctx context.Context, c testbed.Change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.say("apply", c.Network)
	if g.state != "" {
		return fmt.Errorf("applied over %s", g.state)
	}
	g.state = c.Network
	if g.applied != nil {
		g.applied()
	}
	if g.held {
		g.state = ""
		return fmt.Errorf("the lease is %w", testbed.ErrHeld)
	}
	if c.Network == g.refuses {
		return errors.New("it is refused")
	}
	return ctx.Err()
}

func (g *ground) Restore(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == "" {
		return nil
	}
	g.say("restore", g.state)
	if g.stuck > 0 {
		g.stuck--
		return &testbed.RestoreError{Network: g.state, Dir: "/", Steps: []string{"undo it", "and wait"}, Err: errors.New("it is stuck")}
	}
	g.left = g.forgets && g.state == "vxlan-on" && slices.Contains(g.said, "open pod")
	g.state = ""
	return nil
}

// changer is the ground as a testbed.Changer.
type changer struct{ *ground }

func (c changer) Watch(context.Context) {
	if c.state != "" {
		c.leaves = append(c.leaves, "looked at too late")
	}
	c.watched = true
}

func (c changer) Left() []string {
	if !c.watched {
		return nil
	}
	return c.leaves
}

func (c changer) Close() error {
	c.closed = true
	return nil
}

// changing is a run on such ground, of so many blocks, in which the host's network stands in every state.
func changing(t *testing.T, blocks int, changes ...testbed.Change) (experiment.Config, *ground) {
	t.Helper()
	return changingAgainst(t, "host", blocks, changes...)
}

// changingAgainst is a run on such ground against a baseline.
func changingAgainst(t *testing.T, baseline string, blocks int, changes ...testbed.Change) (experiment.Config, *ground) {
	t.Helper()
	s := small([]string{"host", "pod"}, result.CrossNode)
	s.Baseline, s.Design.Blocks = baseline, blocks
	return changingStudy(t, s, changes...)
}

// changingStudy is a run of a study on such ground.
func changingStudy(t *testing.T, s *study.Study, changes ...testbed.Change) (experiment.Config, *ground) {
	t.Helper()
	g := &ground{Driver: lab.NewDriver(network.Catalogue())}
	s.Design.TimeBudget = 20 * time.Minute
	for _, c := range changes {
		c.Uses = "pod"
		c.Apply = []testbed.Action{{Command: []string{"apply", c.Network}}}
		s.Networks, s.Changes = append(s.Networks, c.Network), append(s.Changes, c)
	}
	c := setUp(t, small([]string{"host"}), 1, nil) // for all that does not depend on the study
	p, err := experiment.Prepare(t.Context(), s, g, workloads())
	if err != nil {
		t.Fatal(err)
	}
	own, err := experiment.Assemble(t.Context(), s, p, g, workloads())
	if err != nil {
		t.Fatal(err)
	}
	own.Folder, own.Progress, own.Judge = c.Folder, c.Progress, c.Judge
	own.Program, own.Machine, own.Changer = c.Program, idle(t, own), changer{g}
	return own, g
}

// byBuild are the networks that trials measured, by build.
func byBuild(trials []result.Trial) map[int][]string {
	all := map[int][]string{}
	for _, tr := range trials {
		network, _, _ := strings.Cut(tr.Cell, "/")
		all[tr.Build] = append(all[tr.Build], network)
	}
	return all
}

// Each state of a cluster is measured in builds of its own against the baseline of the same state, and the cluster is in the state
// in which it was found between them and after them.
func TestChangesAreMeasuredAgainstTheirOwnBaseline(t *testing.T) {
	// An interval takes six blocks. Two more are for bursts that the kernel itself disturbs.
	const blocks, needed = 8, stats.DefaultMinBuilds
	c, g := changing(t, blocks, testbed.Change{Network: "vxlan-on"}, testbed.Change{Network: "slow"})
	run := mustRun(t, c)
	// It may be resolved before its last block, in all states alike.
	if run.Ended != plan.EndedBuilds && run.Ended != plan.EndedResolved || g.state != "" || !g.closed {
		t.Errorf("ended by %q, the cluster changed for %q, given back: %v", run.Ended, g.state, g.closed)
	}
	seen := map[string]int{}
	for build, networks := range byBuild(journal(t, c)) {
		if len(networks) != 3 || !slices.Contains(networks, "host") || !slices.Contains(networks, "host+twin") {
			t.Errorf("build %d has %v", build, networks)
		}
		for _, n := range networks {
			seen[n]++
		}
	}
	built := seen["pod"]
	if built < needed || built > blocks || seen["vxlan-on"] != built || seen["slow"] != built || seen["host"] != 3*built {
		t.Errorf("builds of each network: %v", seen)
	}
	orderly(t, g.said)
	noted(t, run, "vxlan-on, slow", "host stood in every round")
	noted(t, run, "network slow was ready", fmt.Sprintf("median of %d", built))
	means := map[string]result.Delta{}
	for _, d := range run.Deltas {
		if d.Headline {
			means[d.Network] = d
		}
	}
	// The truth: the rules slow the host's network too. Against a baseline without them the network would be slower by all of that.
	slow, pod := means["slow"], means["pod"]
	if wrong := slow.BaselineValue / pod.BaselineValue; wrong < 2 || slow.Ratio > wrong {
		t.Errorf("slow ground: %.3f, %v against %v, elsewhere %v", slow.Ratio, time.Duration(slow.Value), time.Duration(slow.BaselineValue), time.Duration(pod.BaselineValue))
	}
	for _, d := range means { // the tail takes more transactions than bursts have on a busy machine
		if d.RatioLow == nil || d.Blocks < needed {
			t.Errorf("%s %s has %d blocks, an interval: %v", d.Cell, d.Metric, d.Blocks, d.RatioLow != nil)
		}
	}
}

// A budget that holds fewer visits than small differences take has as many as it holds, three at least, and says so.
func TestFewerVisitsInLessTime(t *testing.T) {
	for budget, want := range map[time.Duration]int{20 * time.Minute: plan.MinBuilds, 75 * time.Second: 4, 55 * time.Second: 3} {
		s := small([]string{"host", "pod", "slow"}, result.CrossNode)
		s.Baseline, s.Design.TimeBudget, s.Design.Builds, s.Design.Rounds = "pod", budget, plan.MinBuilds, 0
		s.Changes = []testbed.Change{{Network: "slow", Uses: "pod"}}
		p, err := experiment.Prepare(t.Context(), s, &ground{Driver: lab.NewDriver(network.Catalogue())}, workloads())
		if err != nil || p.Rules.MinBuilds != want || p.Rules.Builds != want {
			t.Errorf("%v: %v, planned with %d visits, at least %d", budget, err, p.Rules.Builds, p.Rules.MinBuilds)
		}
		if noted := slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "visits to each state") }); noted != (want < plan.MinBuilds) {
			t.Errorf("%v: notes %q", budget, p.Notes)
		}
	}
}

// A baseline that is one state of the cluster is visited twice in each block, and what a change does to both ends is in the delta.
func TestBaselineIsAState(t *testing.T) {
	const blocks = 3
	c, g := changingAgainst(t, "pod", blocks, testbed.Change{Network: "slow"})
	run := mustRun(t, c)
	seen, took := map[string]int{}, map[string][]float64{}
	for _, tr := range journal(t, c) {
		if tr.Failed != "" {
			t.Errorf("%s: %s", tr.ID(), tr.Failed)
		}
		name, _, _ := strings.Cut(tr.Cell, "/")
		seen[name]++
		took[name] = append(took[name], tr.Bursts.P50...)
	}
	// A double difference leaves it out, as the host's network is slowed as much. What was measured has it in any case.
	if slow, pod := stats.Median(took["slow"]), stats.Median(took["pod"]); slow < 1.2*pod {
		t.Errorf("the change costs nothing: %v against %v", time.Duration(slow), time.Duration(pod))
	}
	for _, name := range []string{"pod", "pod+twin", "slow", "host", "host@slow", "host@as-found+twin"} {
		if seen[name] != blocks {
			t.Errorf("%s has %d trials, want %d: %v", name, seen[name], blocks, seen)
		}
	}
	orderly(t, g.said)
	noted(t, run, "deltas are across visits, against pod")
	for _, d := range run.Deltas {
		switch across := d.Across; {
		case !d.Headline:
		case d.Network == "slow" && (across == nil || across.State != "slow" || across.Baseline != "as found"):
			t.Errorf("slow: %+v, across %+v", d, across)
		case d.Network == "host" && across != nil:
			t.Errorf("host in the baseline's state: %+v", across)
		}
	}
}

// A plan whose deltas are across visits offers host, by which what all that is measured in a visit shares can be taken out; no other plan does.
func TestPlanOffersAReference(t *testing.T) {
	for _, c := range []struct {
		baseline string
		networks []string
		want     bool
	}{{"pod", []string{"pod"}, true}, {"pod", []string{"host", "pod"}, false}, {"host", []string{"host", "pod"}, false}} {
		s := small(c.networks, result.CrossNode)
		s.Baseline = c.baseline
		own, _ := changingStudy(t, s, testbed.Change{Network: "slow"})
		offered := slices.ContainsFunc(own.Run.Notes, func(n string) bool { return strings.Contains(n, "with host among the networks") })
		if offered != c.want {
			t.Errorf("%v against %s: %q", c.networks, c.baseline, own.Run.Notes)
		}
	}
}

// orderly fails unless all that stood under a state was opened and closed under it.
func orderly(t *testing.T, said []string) {
	t.Helper()
	state, up := "", 0
	for i, words := range said {
		what := strings.Fields(words)
		last := what[len(what)-1]
		switch what[0] {
		case "apply":
			if state != "" || up != 0 {
				t.Fatalf("%d: %s with %d testbeds up, under %q: %v", i, words, up, state, said)
			}
			state = last
		case "restore":
			if state != last || up != 0 {
				t.Fatalf("%d: %s with %d testbeds up, under %q: %v", i, words, up, state, said)
			}
			state = ""
		case "open":
			up++
			if want := strings.TrimSpace(what[0] + " " + what[1] + " " + state); words != want {
				t.Fatalf("%d: %s, want %s", i, words, want)
			}
		case "close":
			up--
		}
	}
	if state != "" || up != 0 {
		t.Errorf("at the end %d testbeds are up, under %q", up, state)
	}
}

// Pods that are kept stand before the change is made.
func TestPodsLiveThroughChanges(t *testing.T) {
	t.Parallel()
	c, g := changing(t, 2, testbed.Change{Network: "vxlan-on", Kept: true})
	mustRun(t, c)
	for _, tr := range journal(t, c) {
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
	}
	up := 0
	for i, words := range g.said {
		switch what, _, _ := strings.Cut(words, " "); what {
		case "open":
			up++
		case "close":
			up--
		case "apply":
			if up != 3 {
				t.Errorf("%d: the change is made with %d testbeds up: %v", i, up, g.said)
			}
		}
	}
}

// A cluster that another run changes is no place for this one.
func TestChangesOfTwoRuns(t *testing.T) {
	t.Parallel()
	c, g := changing(t, 4, testbed.Change{Network: "vxlan-on"})
	g.held = true
	run, err := experiment.Run(t.Context(), c)
	if !errors.Is(err, testbed.ErrHeld) || run.Ended != plan.EndedFailed || !g.closed {
		t.Errorf("%v, ended by %q, given back: %v", err, run.Ended, g.closed)
	}
}

// A cluster that can't be restored ends the run: what was measured is kept, and the error ends with what has to be done. One
// that can be restored at the second try is.
func TestRestoreThatFails(t *testing.T) {
	t.Parallel()
	for stuck, left := range map[int]string{1: "", 2: "vxlan-on"} {
		t.Run(fmt.Sprint(stuck), func(t *testing.T) {
			t.Parallel()
			c, g := changing(t, 3, testbed.Change{Network: "vxlan-on"})
			g.stuck = stuck
			run, err := experiment.Run(t.Context(), c)
			var hand *testbed.RestoreError
			if err == nil || g.state != left || errors.As(err, &hand) != (left != "") {
				t.Fatalf("%v; the cluster is changed for %q", err, g.state)
			}
			if left != "" && !strings.HasSuffix(err.Error(), "in /:\n  undo it\n  and wait") {
				t.Errorf("the error does not end with what to do: %v", err)
			}
			if run.Ended != plan.EndedFailed || len(journal(t, c)) < 3 {
				t.Errorf("ended by %s with %d trials", run.Ended, len(journal(t, c)))
			}
		})
	}
}

// A run that is interrupted restores the cluster, wherever it was.
func TestInterruptedChangesAreUndone(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"apply", "round"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			c, g := changing(t, 3, testbed.Change{Network: "vxlan-on"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if when == "apply" {
				g.applied = cancel
			} else {
				c.Progress = &watcher{then: cancel, when: func(s experiment.Status) bool {
					g.mu.Lock()
					defer g.mu.Unlock()
					return s.Round == 2 && g.state != ""
				}}
			}
			run, err := experiment.Run(ctx, c)
			if err != nil || run.Ended != plan.EndedInterrupted || g.state != "" || !g.closed {
				t.Errorf("%v, ended by %q; the cluster is changed for %q, given back: %v", err, run.Ended, g.state, g.closed)
			}
			orderly(t, g.said)
		})
	}
}
