package cli

import (
	"fmt"

	"netdelta/experiment"
	"netdelta/result"
)

type progress struct{ env *environment }

func (env *environment) progress(quiet bool) *progress { return &progress{env} }
func (p *progress) Update(s experiment.Status)         {}
func (p *progress) stop()                              {}

func (env *environment) table(run result.Run) error {
	for _, d := range run.Deltas {
		if d.Headline {
			lo, hi := 0.0, 0.0
			if d.RatioLow != nil {
				lo, hi = *d.RatioLow, *d.RatioHigh
			}
			fmt.Fprintf(env.out, "%-40s %8.4f [%.4f %.4f] %+8.0f %s p=%v blocks=%d rounds=%d var=%+v excl=%v\n", d.Cell, d.Ratio, lo, hi, d.Difference, d.Verdict, *d.PAdjusted, d.Blocks, d.Rounds, *d.Variance, d.Excluded)
		}
	}
	for _, d := range run.Null {
		if d.Headline {
			fmt.Fprintf(env.out, "null %-40s %8.4f  %s var=%+v base=%v\n", d.Cell, d.Ratio, d.Verdict, *d.Variance, d.BaselineValue)
		}
	}
	for _, c := range run.Checks {
		fmt.Fprintln(env.out, c)
	}
	fmt.Fprintln(env.out, run.Notes, run.Ended)
	return nil
}
