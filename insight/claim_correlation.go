package insight

import (
	"math"
	"slices"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/stats"
)

// correlated is what a clause about a correlation says, a part for each placement, and what it speaks of in vain. In each setting that it
// covers the correlation must be significant in the direction claimed; it is contradicted where one is significant the other way,
// corrected for the number of settings (Bonferroni).
func (j *claimJudge) correlated(c *study.Clause) (parts []ClaimPart, absent []Missing) {
	covered := j.covered(c.Where)
	if len(covered) == 0 {
		return nil, []Missing{j.noSetting(c.Where)}
	}
	type held struct {
		of   result.Correlation
		base result.Cell
	}
	var all []held
	for _, t := range covered {
		for _, r := range j.correlations {
			if r.Setting == t.setting && r.Metric == c.Metric && (study.Raw{Metric: r.RawMetric, Workload: r.RawWorkload}) == c.With {
				all = append(all, held{r, *t.baseline})
			}
		}
	}
	if len(all) == 0 {
		return nil, []Missing{{c.Metric + " with " + c.With.Metric + " of " + c.With.Workload, "not measured over three networks"}}
	}
	for at, own := range By(all, func(h held) result.Placement { return h.of.Placement }) {
		verdicts := make([]string, len(own))
		for i, h := range own {
			verdicts[i] = correlationVerdict(h.of, c.Relation == study.RisesWith, len(all))
		}
		p := ClaimPart{Clause: c, Placement: at, Verdict: allOf(verdicts), Of: len(own), Settings: len(own)}
		for i, h := range own {
			if verdicts[i] != p.Verdict {
				continue
			}
			if p.Alike++; p.Correlation == nil || math.Abs(h.of.Pearson) < math.Abs(p.Correlation.Pearson) {
				p.Correlation, p.Decisive = &own[i].of, ClaimComparison{A: h.base, B: h.base}
			}
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// correlationVerdict is what one of so many correlations says of a claim.
func correlationVerdict(c result.Correlation, rises bool, of int) string {
	claimed, against := result.CorrelationRises, result.CorrelationFalls
	if !rises {
		claimed, against = against, claimed
	}
	switch n := len(c.Points); {
	case c.Verdict == claimed:
		return Confirmed
	case c.Verdict == against && n > 3:
		// Two-sided, by Fisher's z, as the interval is.
		p := math.Erfc(math.Abs(math.Atanh(c.Pearson)) * math.Sqrt(float64(n-3)/2))
		if p*float64(of) < 1-stats.DefaultConfidence {
			return Contradicted
		}
	}
	return Undecided
}

// speaksOfRate says whether a clause is about a rate that a cell's setting has; other settings have nothing to correlate.
func (j *claimJudge) speaksOfRate(c *study.Clause, cell result.Cell) bool {
	return !c.OfCorrelation() || slices.ContainsFunc(j.cells, func(o result.Cell) bool {
		_, measured := j.deltas[measure{o.ID, c.Metric}]
		return measured && o.Setting() == cell.Setting()
	})
}
