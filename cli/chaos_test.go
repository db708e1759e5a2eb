package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"netdelta/internal/require"
)

// How a fault may end, as the table of faults prints it. All else is lost: the test fails.
const (
	survived = "survived" // nothing that was measured is missing, and the run went on, can be resumed, or was never touched
	named    = "named"    // what could not be measured is named, with its cause; all else is there
)

// faultRow is something that happens to a run, and how that may end.
type faultRow struct {
	name   string
	want   string
	strike func(c *chaos)
	on     where
}

// where a fault strikes.
type where int

const (
	onLab     where = iota
	anywhere        // on a cluster too: it strikes this program, not its pods
	onlyGuest       // what it does would change the host
)

// faults is the table: make chaos goes through it, on a lab and, by the rows that strike this program alone, on a cluster. What each row
// holds is in docs/reliability.md.
func faults() []faultRow {
	return []faultRow{
		{"kill -9, again and again", survived, killedAgainAndAgain, onLab},
		{"kill -9, then go on", survived, killedOnce, anywhere},
		{"kill -9 while sockets are joined", survived, killedWithGroups, onLab},
		{"kill -9, agents stopped, then cleanup", survived, func(c *chaos) { stoppedOrphansEnd(c, "cleanup") }, onLab},
		{"kill -9, agents stopped, then a run", survived, func(c *chaos) { stoppedOrphansEnd(c, three("--out", "next", "--quiet")...) }, onLab},
		{"SIGINT", survived, func(c *chaos) { interrupted(c, os.Interrupt) }, onLab},
		{"SIGTERM", survived, func(c *chaos) { interrupted(c, sigterm) }, onLab},
		{"SIGHUP", survived, func(c *chaos) { interrupted(c, sighup) }, anywhere},
		{"SIGINT while networks are built", survived, interruptedEarly, onLab},
		{"kill -9 of an agent", named, func(c *chaos) { lostPod(c, sigkill) }, onLab},
		{"SIGSTOP of an agent", named, func(c *chaos) { lostPod(c, sigstop) }, onLab},
		{"SIGSTOP of the agent that sweeps", named, func(c *chaos) { stoppedAgents(c, shared) }, onLab},
		{"SIGSTOP of all agents", named, func(c *chaos) { stoppedAgents(c, all) }, onLab},
		{"SIGSTOP of a network's own processes", named, stoppedTunnels, onLab},
		{"SIGSTOP of a service", named, stoppedService, onLab},
		{"a link goes down", named, linkDown, onLab},
		{"a hog on the measuring processor", survived, hog, onLab},
		{"another run, and one in its folder", named, otherRuns, onLab},
		{"twenty runs at once", named, twentyRuns, onLab},
		{"a full disk", named, fullDisk, onLab},
		{"the run folder vanishes", named, folderVanishes, onLab},
		{"a full standard output", named, fullOutput, anywhere},
		{"a standard error that is not read", survived, unreadMessages, onLab},
		{"read-only homes", survived, readOnlyHomes, onLab},
		{"few descriptors", named, fewDescriptors, onLab},
		{"few descriptors that may be more", survived, fewDescriptorsAtFirst, onLab},
		{"few network namespaces", named, fewNamespaces, onLab},
		{"low memory", named, lowMemory, onLab},
		{"no /proc", named, noProc, onLab},
		{"a kubeconfig that never ends", named, endlessKubeconfig, onLab},
		{"an API server that never stops answering", named, endlessServer, onLab},
		{"a login that prints without end", named, endlessLogin, onLab},
		{"a planted folder on a server", survived, plantedFolder, onLab},
		{"the clock is set back and forth", survived, clockSteps, onlyGuest},
	}
}

// chaos is a fault that strikes a run.
type chaos struct {
	*testing.T
	dir   string   // with the studies
	flags []string // that go with each run on a cluster, nil on a lab
	took  time.Duration
	said  string
}

// nothingRuns fails the test when processes of the program are still there: of this run's alone on a cluster, where others run meanwhile.
func (c *chaos) nothingRuns() {
	c.Helper()
	if c.flags == nil {
		nothingRuns(c.T)
	} else {
		nothingRunsIn(c.T, c.dir)
	}
}

// run are the arguments of a run.
func (c *chaos) run(args ...string) []string {
	return append(append([]string{"run"}, args...), c.flags...)
}

// awaitTrials waits until the journal of a run under way holds so many trials.
func (c *chaos) awaitTrials(dir string, atLeast int) {
	c.Helper()
	if c.flags == nil {
		awaitTrials(c.T, dir, atLeast)
	} else {
		awaitWhole(c.T, dir, atLeast)
	}
}

// command prepares a call of the program, which takes longer on a cluster.
func (c *chaos) command(args ...string) *exec.Cmd {
	if c.flags == nil {
		return command(c.T, c.dir, args...)
	}
	return longCommand(c.T, c.dir, args...)
}

// three ends a run of smallStudy after as many builds.
func three(args ...string) []string {
	return append([]string{"run", "small.yaml", "--builds", "3"}, args...)
}

// ended notes how long after the fault the run was over.
func (c *chaos) ended(since time.Time) { c.took = time.Since(since) }

// outcome is what became of a fault.
type outcome struct {
	faultRow
	took time.Duration
	came string
	said string
}

// strikes has the fault strike a run. Nothing of the program may run after it, and the host must be as it was.
func (f faultRow) strikes(c *chaos) {
	before := host(c.T)
	f.strike(c)
	c.nothingRuns()
	untouched(c.T, before)
}

// goThrough strikes runs of a lab with the faults in turn, each in a folder of its own, and prints what became of them.
func goThrough(t *testing.T, all []faultRow) {
	var came []outcome
	began := time.Now()
	for _, f := range all {
		o := outcome{faultRow: f, came: "skipped"}
		ok := t.Run(f.name, func(t *testing.T) {
			c := &chaos{T: t, dir: labFolder(t)}
			f.strikes(c)
			o.came, o.took, o.said = f.want, c.took, c.said
		})
		if !ok {
			o.came = "LOST"
		}
		came = append(came, o)
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "fault\toutcome\tended after\t\n")
	for _, o := range came {
		took := "-"
		if o.took > 0 {
			took = fmt.Sprintf("%.1f s", o.took.Seconds())
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", o.name, o.came, took, o.said)
	}
	_ = w.Flush() // it writes to memory
	t.Logf("%d faults in %.0f s\n%s", len(came), time.Since(began).Seconds(), &text)
}

// Whatever happens to a run on this machine, it survives or says what is lost.
func TestChaosWhenQuiet(t *testing.T) {
	require.Long(t)
	goThrough(t, slices.DeleteFunc(faults(), func(f faultRow) bool { return f.on == onlyGuest }))
}

// faultsOn are the faults that strike in one place.
func faultsOn(on where) []faultRow {
	return slices.DeleteFunc(faults(), func(f faultRow) bool { return f.on != on })
}

// The same of a run on a cluster, for what happens to this program. Its pods go with it, or with a call of cleanup.
func TestChaosOnCluster(t *testing.T) {
	t.Parallel()
	for _, f := range faultsOn(anywhere) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			cluster, flags := inNamespace(t)
			c := &chaos{T: t, dir: clusterFolder(t), flags: flags}
			// Which networks a cluster has is no matter of faults, and each costs pods.
			write(t, filepath.Join(c.dir, "small.yaml"), strings.Replace(longClusterStudy, "builds: 500", "builds: 3", 1))
			f.strikes(c)
			if left := podsOf(t, cluster); len(left) > 0 {
				t.Errorf("%d pods are left", len(left))
			}
			t.Logf("%s after %v: %s", f.want, c.took, c.said)
		})
	}
}

// The same in a guest, for what would change the host.
func TestChaosInGuest(t *testing.T) {
	goThrough(t, faultsOn(onlyGuest))
}

// inPrivate runs a script within a mount namespace of its own, in which $0 is the program and $@ are the arguments. Nothing that it
// mounts is seen by others, or outlives it.
func (c *chaos) inPrivate(script string, args ...string) ending {
	c.Helper()
	cmd := exec.Command("sh", append([]string{"-c", "mount --make-rprivate / || exit 77\n" + script, os.Getenv(tested)}, args...)...)
	cmd.Dir = c.dir
	return c.mounting(cmd)
}

// count is how many trials of a run folder are whole, and how many failed.
func (c *chaos) count(out string) (whole, failed int) {
	c.Helper()
	for _, tr := range trials(c.T, filepath.Join(c.dir, out)) {
		if tr.Measured() {
			whole++
		} else {
			failed++
		}
	}
	return whole, failed
}
