package cli

import (
	"fmt"
	"math"
	"sync/atomic"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// liveJudge judges a run under way and tells its progress what stands out so far.
type liveJudge struct {
	words.Judge
	leading *atomic.Pointer[string]
}

// Settled implements experiment.Judge.
func (j liveJudge) Settled(run result.Run, trials []result.Trial) map[string]bool {
	settled, farthest, found := j.SoFar(run, trials)
	text := leading(farthest, found)
	j.leading.Store(&text)
	return settled
}

// leading is the delta that stands out as progress shows it: "vxlan +43% ±0.6".
func leading(d result.Delta, found bool) string {
	if !found {
		return ""
	}
	half := 100 * (*d.RatioHigh - *d.RatioLow) / 2
	decimals := 1
	if half >= 10 {
		decimals = 0
	}
	return fmt.Sprintf("%s %s ±%.*f", insight.Name(d.Network, d.Path), words.Percent(d.Ratio), decimals, math.Abs(half))
}
