package experiment

import (
	"slices"
	"testing"

	"netdelta/result"
)

func TestFinishedBuildsLeaveOutFailures(t *testing.T) {
	got := finishedBuilds([]result.Trial{
		{Cell: "a", Build: 0, Bursts: result.Bursts{Round: make([]int, 4)}},
		{Cell: "b", Build: 0, Failed: "lost"},
		{Cell: "a", Build: 2, Bursts: result.Bursts{Round: make([]int, 3)}},
		{Cell: "b", Build: 2, Bursts: result.Bursts{Round: make([]int, 5)}},
	})
	if len(got) != 2 || got[0].Rounds != 4 || !slices.Equal(got[0].Cells, []string{"a"}) ||
		got[1].Build != 2 || got[1].Rounds != 5 || !slices.Equal(got[1].Cells, []string{"a", "b"}) {
		t.Errorf("got %+v", got)
	}
}
