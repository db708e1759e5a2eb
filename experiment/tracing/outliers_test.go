package tracing_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
	"netdelta/network"
	probe "netdelta/probe/hops"
	"netdelta/result"
)

// burner is the environment variable that has this program disturb the processor of this number until its input ends.
const burner = "NETDELTA_BURN"

// burnNowAndThen takes a processor for two milliseconds of each twenty, ahead of all that have no priority.
func burnNowAndThen(processor int) {
	var set unix.CPUSet
	set.Set(processor)
	_ = unix.SchedSetaffinity(0, &set)
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	for {
		time.Sleep(18 * time.Millisecond)
		spin(2 * time.Millisecond)
	}
}

// spin computes for so long.
func spin(long time.Duration) (looks int) {
	for began := time.Now(); time.Since(began) < long; looks++ {
		continue
	}
	return looks
}

// What makes the slowest transactions slow is named: here another program that takes the processor now and then.
func TestOutliersAreExplained(t *testing.T) {
	allowed, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	measuring := allowed[len(allowed)-1]
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hog := exec.CommandContext(t.Context(), self, "-test.run=^TestOutliersAreExplained$")
	hog.Env = append(os.Environ(), burner+"="+strconv.Itoa(measuring))
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = hog.Process.Kill()
		_ = hog.Wait()
	}()
	w := trace(t, []network.Network{find(t, "bridge")}, result.CrossNode, probe.Disturbances, 0)[0]
	o := w.Outliers
	if o == nil || o.Count < 10 {
		t.Fatalf("outliers %+v", o)
	}
	sum := 0.0
	for _, r := range o.Reasons {
		t.Logf("%s: %.0f%% of the outliers, %.2g%% of the others", r.Says, 100*r.Outliers, 100*r.Others)
		sum += r.Outliers
	}
	first := o.Reasons[0]
	if first.Says != string(probe.ReasonPreempted) || first.Outliers < 0.5 || first.Others > first.Outliers/5 || sum < 0.999 || sum > 1.001 {
		t.Errorf("the first reason is %+v; all shares add up to %v", first, sum)
	}
}
