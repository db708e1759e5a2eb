package html

import (
	"fmt"
	"strconv"

	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// exactComparison is what an exact run says of the same networks, as the page shows it.
type exactComparison struct {
	Run, Says string
	Settings  []exactSetting
}

type exactSetting struct {
	Load, Where, Correlation string
	Networks                 []exactNetwork
}

type exactNetwork struct {
	Network, Native, NativeRank, Exact, ExactRank, Request, Response string
}

// ExactSays is what a run that counts instructions counts, and what not; "" for any other.
func (p *page) ExactSays() string { return words.ExactSays(p.Run) }

// ExactComparison is with the exact run that was named, nil without one.
func (p *page) ExactComparison() *exactComparison {
	b := p.Run.ExactComparison
	if b == nil {
		return nil
	}
	shown := &exactComparison{Run: b.Run, Says: words.ExactComparison(*b)}
	place := func(rank float64) string { return strconv.FormatFloat(rank, 'f', -1, 64) }
	for _, s := range b.Settings {
		one := exactSetting{
			Load:  words.Load(result.Setting{Workload: s.Workload, Params: s.Params, Placement: s.Placement}),
			Where: words.Where(s.Placement),
		}
		if s.Correlation != nil {
			one.Correlation = fmt.Sprintf("%.2f", *s.Correlation)
		}
		for _, n := range s.Networks {
			one.Networks = append(one.Networks, exactNetwork{
				n.Network, words.Percent(n.Native), place(n.NativeRank), unit.Ratio(n.Exact).PercentTo(2), place(n.ExactRank),
				fmt.Sprintf("%+.0f", n.Request), fmt.Sprintf("%+.0f", n.Response),
			})
		}
		shown.Settings = append(shown.Settings, one)
	}
	return shown
}
