package cli

import (
	"testing"

	"netdelta/experiment"
	"netdelta/report/words"
	"netdelta/result"
)

// Progress begins with what stands out so far.
func TestProgressShowsFigures(t *testing.T) {
	low, high := 1.424, 1.436
	text := leading(result.Delta{Network: "vxlan", Path: "pod", Judgement: result.Judgement{Ratio: 1.43, RatioLow: &low, RatioHigh: &high}}, true)
	if got, want := doing(experiment.Status{Build: 3, Round: 2, Rounds: 10, Open: 4}, &text), "vxlan +43% ±0.6 · 4 open · build 3, round 2 of 10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := doing(experiment.Status{Build: 1, Round: 2, Rounds: 10, Open: -1}, nil), "build 1, round 2 of 10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p := &progress{}
	liveJudge{words.NewJudge(nil), &p.leading}.Settled(result.Run{}, nil)
	if p.leading.Load() == nil || *p.leading.Load() != "" {
		t.Error("without any delta something stands out")
	}
}
