package agent

import (
	"testing"
	"time"

	"netdelta/engine"
)

// Clients of several agents begin together; what fails of one is handed over with its number, and the others go on.
func TestBurstTogether(t *testing.T) {
	var all []*SyncClient
	for _, name := range []string{"steady", "fails", "steady"} {
		a := start(t)
		c := &SyncClient{Agent: a, Session: dial(t, a, name)}
		if err := c.ReadClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	lead, before := LeadFor(len(all)), Now()
	done := make([]int, len(all))
	spare := BurstTogether(t.Context(), all, engine.BurstSpec{Duration: time.Millisecond, Deadline: time.Minute}, lead, func(i int, got SyncResult, err error) {
		if done[i]++; (err != nil) != (i == 1) || err == nil && got.Totals.Transactions != 10 {
			t.Errorf("client %d: %+v, %v", i, got, err)
		}
	})
	if done[0] != 1 || done[1] != 1 || done[2] != 1 || Now()-before < lead || spare > lead {
		t.Errorf("after %v of %v they were taken %v times, with %v to spare", Now()-before, lead, done, spare)
	}
}

// An offset is read once while it holds.
func TestReadClock(t *testing.T) {
	c := &SyncClient{Agent: start(t)}
	if err := c.ReadClock(t.Context()); err != nil || c.Offset.Error == 0 {
		t.Fatalf("%+v, %v", c.Offset, err)
	}
	c.Offset.Ahead = time.Hour
	if err := c.ReadClock(t.Context()); err != nil || c.Offset.Ahead != time.Hour {
		t.Errorf("it was read again: %+v, %v", c.Offset, err)
	}
	c.read -= offsetFor
	if err := c.ReadClock(t.Context()); err != nil || c.Offset.Ahead == time.Hour {
		t.Errorf("it was not read again: %+v, %v", c.Offset, err)
	}
}

// Who was told too late is told sooner, within bounds.
func TestLongerLead(t *testing.T) {
	if got := LongerLead(time.Second, -time.Second); got != 4*time.Second {
		t.Error(got)
	}
	if got := LongerLead(time.Second, -time.Hour); got != leadMost {
		t.Error(got)
	}
}
