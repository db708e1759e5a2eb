package agent

import (
	"errors"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/testbed/rpc"
)

// With equally long ways the offset is exact; with ways of which one is longer it is off by no more than it says.
func TestOffset(t *testing.T) {
	const ahead = 3 * time.Hour
	for _, c := range []struct{ there, working, back time.Duration }{
		{100 * time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond},
		{100 * time.Microsecond, 0, 900 * time.Microsecond},
		{time.Millisecond, 5 * time.Millisecond, 0},
	} {
		sent := 7 * time.Second
		arrived := sent + c.there
		r := Reading{Received: arrived + ahead, Answered: arrived + c.working + ahead}
		o := offset(sent, r, arrived+c.working+c.back)
		if off := (o.Ahead - ahead).Abs(); off > o.Error || o.Error > (c.there+c.back)/2+1 {
			t.Errorf("%+v: %v ahead, said to be %v +-%v", c, ahead, o.Ahead, o.Error)
		}
		if c.there == c.back && o.Ahead != ahead {
			t.Errorf("%+v: ahead by %v, want %v", c, o.Ahead, ahead)
		}
		if got := o.There(sent); got != sent+o.Ahead {
			t.Errorf("a moment there: %v", got)
		}
	}
}

// An agent of this machine reads the same clock.
func TestOffsetOfAnAgent(t *testing.T) {
	a := start(t)
	o, err := a.Offset(t.Context(), 8)
	if err != nil || o.Ahead.Abs() > o.Error || o.Error > time.Second {
		t.Errorf("the same clock is ahead by %v +-%v, %v", o.Ahead, o.Error, err)
	}
}

func TestBurstAt(t *testing.T) {
	a := start(t)
	session := dial(t, a, "steady")
	spec := engine.BurstSpec{Duration: time.Millisecond, Deadline: time.Minute}
	begin := Now() + 50*time.Millisecond
	got, err := a.BurstAt(t.Context(), session, begin, spec, time.Minute)
	if err != nil || got.Burst.Transactions != 10 || got.Totals.Transactions != 10 {
		t.Fatalf("%+v, %v", got, err)
	}
	if Now() < begin {
		t.Error("it did not wait")
	}
	// What comes too late is done at once, and says so. The client of this test never forgets what it has counted.
	got, err = a.BurstAt(t.Context(), session, begin-time.Hour, spec, time.Minute)
	if err != nil || got.Spare > -time.Hour || got.Totals.Transactions != 20 {
		t.Errorf("an hour too late: %+v, %v", got, err)
	}
}

func TestBurstAtThatFails(t *testing.T) {
	a := start(t)
	at, spec := Now(), engine.BurstSpec{Duration: time.Millisecond, Deadline: time.Minute}
	if _, err := a.BurstAt(t.Context(), dial(t, a, "fails"), at, spec, time.Minute); err == nil || !a.Alive() {
		t.Errorf("a burst that fails: %v, and the agent lives: %v", err, a.Alive())
	}
	if _, err := a.BurstAt(t.Context(), dial(t, a, "overtime"), at, spec, time.Minute); !errors.Is(err, ErrHung) || !a.Alive() {
		t.Errorf("a burst that is not over in time: %v", err)
	}
	server, err := a.Serve(t.Context(), "steady", result.Params{}, local(), -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.BurstAt(t.Context(), server, at, spec, time.Minute); err == nil {
		t.Error("a server has fired")
	}
	if _, err := a.BurstAt(t.Context(), dial(t, a, "dies"), at, spec, time.Minute); !errors.Is(err, rpc.ErrGone) {
		t.Errorf("an agent that dies: %v", err)
	}
}
