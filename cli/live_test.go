package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netdelta/experiment"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// Progress says what a run does, where it is, and how many cells are open.
func TestProgressSaysWhatIsDone(t *testing.T) {
	for want, s := range map[string]experiment.Status{
		"setting up build 3 · 4 open":                    {Doing: experiment.SettingUp, Build: 3, Cells: 9, Open: 4},
		"build 3, round 2 of 10 · all known well enough": {Doing: experiment.Measuring, Build: 3, Round: 2, Rounds: 10},
		"build 1, round 2 of 10":                         {Doing: experiment.Measuring, Build: 1, Round: 2, Rounds: 10, Open: -1},
		"judging build 1":                                {Doing: experiment.Judging, Build: 1, Open: -1},
		"preparing what is measured against":             {Doing: experiment.Preparing, Open: -1},
		"removing what was set up":                       {Doing: experiment.Ending, Build: 4, Open: 2},
	} {
		if got := doing(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// While a run says nothing, as when it sets networks up, the time left goes on; after the end nothing is shown.
func TestTimeLeftGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &progress{shown: ui.NewProgress(&out, ui.Terminal{Width: 80})}
		p.Update(experiment.Status{Doing: experiment.SettingUp, Build: 1, Cells: 9, Open: -1, Budget: time.Minute})
		time.Sleep(21 * time.Second)
		synctest.Wait()
		p.Stop()
		p.Stop()
		for _, left := range []string{"1:00 left", "0:55 left", "0:40 left"} {
			if !strings.Contains(out.String(), left) {
				t.Errorf("%s is not shown in\n%s", left, &out)
			}
		}
		shown := out.Len()
		time.Sleep(time.Minute)
		synctest.Wait()
		if out.Len() != shown {
			t.Error("progress goes on after its end")
		}
	})
}

// After each build the ranking is a line where no one looks on.
func TestRankingInLines(t *testing.T) {
	var out bytes.Buffer
	p := &progress{shown: ui.NewProgress(&out, ui.Terminal{Width: 80})}
	low, high := 1.424, 1.436
	delta := result.Delta{
		Network: "vxlan", Baseline: "host", Path: "pod", Cell: "vxlan", Headline: true, Better: "lower", Setting: result.Setting{Workload: "tcp-rr", Placement: result.CrossNode},
		Judgement: result.Judgement{Ratio: 1.43, RatioLow: &low, RatioHigh: &high, Verdict: "slower"},
	}
	p.judged(2, nil, []result.Delta{delta})
	for _, want := range []string{"so far", "after build 2", "against host", "vxlan +43%"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, &out)
		}
	}
	out.Reset()
	quiet := &progress{}
	quiet.judge(words.NewJudge(nil)).Settled(result.Run{}, nil)
	quiet.Update(experiment.Status{})
	quiet.Stop()
}
