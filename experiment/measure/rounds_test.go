package measure

import (
	"testing"
	"time"

	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/workload"
)

// What is usual in one state of a cluster says nothing of another one.
func TestEachStateHasItsOwnUsualLoad(t *testing.T) {
	r := &Rounds{usual: map[string]*calibration{}}
	in := func(state string) *calibration {
		return r.calibrationFor([]*Session{{Cell: result.Cell{State: state}}, {Cell: result.Cell{}}})
	}
	first := in("vxlan")
	if first == in("routes") || first == in("") || first != in("vxlan") {
		t.Error("states share what is usual, or one has it twice")
	}
}

// A load that is there from the start is not what is usual: once it has gone, rounds are judged by what is.
func TestNothingIsLearnedWhileOthersKeepTheProcessorsBusy(t *testing.T) {
	c, loaded, quiet := &calibration{}, pressure.Load{Waiting: 0.9}, pressure.Load{Waiting: 0.01}
	for range 2 * calibrationRounds {
		c.judge(loaded, true)
	}
	if c.threshold != nil {
		t.Fatal("the load of others counts as usual")
	}
	for range calibrationRounds {
		c.judge(quiet, false)
	}
	if reason := c.judge(loaded, true); reason != pressure.ReasonPressure {
		t.Errorf("the load of others is %q, want %q", reason, pressure.ReasonPressure)
	}
	if reason := c.judge(quiet, false); reason != "" {
		t.Errorf("a quiet round is %q", reason)
	}
}

// A program that makes the load starts and ends within the deadline of each burst, also where the server is the user's own and none of
// netdelta's programs serve.
func TestProgramsHaveTimeToStart(t *testing.T) {
	const burst = 2 * time.Second
	for name, c := range map[string]struct {
		demand workload.Demand
		want   time.Duration
	}{
		"the engine":                     {workload.Demand{}, burst + hangAfter},
		"a server that is a program":     {workload.Demand{Programs: []workload.Program{{Name: "nginx"}}}, burst + programHangAfter},
		"a load on a database elsewhere": {workload.Demand{Burst: burst}, burst + programHangAfter},
		"a transaction of a minute":      {workload.Demand{Transaction: time.Minute}, time.Minute + hangAfter},
	} {
		if got := SizeOf(burst, 0, c.demand).spec().Deadline; got != c.want {
			t.Errorf("%s: a burst of %v is given up after %v, want %v", name, burst, got, c.want)
		}
	}
}

// A burst whose transactions are long has one of them, and none before it that does not count.
func TestLongTransactionsAreMeasuredOneAtATime(t *testing.T) {
	const burst = 20 * time.Millisecond
	short, long := SizeOf(burst, 0, workload.Demand{}), SizeOf(burst, 0, workload.Demand{Transaction: time.Second})
	if spec := short.spec(); spec.Duration != burst || spec.Warmup == 0 {
		t.Errorf("short transactions: %+v", spec)
	}
	if spec := long.spec(); spec.Duration != burst || spec.Warmup != 0 || long.Cost < time.Second || long.Visit != 1 {
		t.Errorf("transactions of a second: %+v, %+v", spec, long)
	}
}

// A burst that ends after a number of transactions has no other end, and the time that these may take.
func TestTransactionsEndBursts(t *testing.T) {
	const burst, lasting = 5 * time.Millisecond, 2 * time.Second
	s := SizeOf(burst, 0, workload.Demand{Transactions: 50_000, Lasting: lasting})
	if spec := s.spec(); spec.Transactions != 50_000 || spec.Duration != 0 || spec.Deadline < 10*lasting || s.Cost < lasting || s.Visit != 1 {
		t.Errorf("50,000 transactions: %+v, %+v", spec, s)
	}
}

// Where ends sleep between requests, visits are shorter, so that a sweep is over before what it takes to wake has changed.
func TestVisitsOfEndsThatSleepAreShort(t *testing.T) {
	const burst, sleeps = 5 * time.Millisecond, 60 * time.Microsecond
	for name, p := range map[string]result.Params{"waking": {CPU: "two"}, "paced": {CPU: "two", RequestRate: 1000}} {
		spec := sweepSpec([]*Session{{Cell: result.Cell{Workload: "tcp-rr", Params: p}, Size: SizeOf(burst, 0, workload.Demand{})}})
		if visit := time.Duration(spec.Transactions+spec.Warmup) * sleeps; visit > burst/10 {
			t.Errorf("%s: visits of %v in a burst of %v", name, visit, burst)
		}
	}
}
