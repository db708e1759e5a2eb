package words

import (
	"fmt"

	"netdelta/insight"
	"netdelta/stats"
)

// Share is a figure of a repeated delta: a percentage, or points where it has no ratio.
func Share(r insight.Repeated, x float64) string {
	if r.Linear {
		return Difference(Unit(r.Delta), x)
	}
	return Percent(x)
}

// Repeated are the intervals of a repeated delta, of the mean over runs and of another run, and the figures of the runs.
func Repeated(r insight.Repeated) (mean, next string, figures []string) {
	for _, x := range r.Figures {
		figures = append(figures, Share(r, x))
	}
	if !r.Enough {
		return fmt.Sprintf("%d of %d runs", len(r.Figures), stats.PredictRuns), "", figures
	}
	p := r.Prediction
	return fmt.Sprintf("[%s, %s]", Share(r, p.Low), Share(r, p.High)), fmt.Sprintf("[%s, %s]", Share(r, p.NextLow), Share(r, p.NextHigh)), figures
}

// RepeatedSays tells the two intervals from each other, and says in how many boots the runs were made.
func RepeatedSays(all []insight.Repeated, runs, boots int) string {
	if len(all) == 0 {
		return "No delta is in two of the runs: there is nothing to predict."
	}
	says := "The mean's interval is where many such runs lie on average. The other is where one more run will lie, on a day and after a boot like " +
		"these: take it for what you may see yourself. Both rest on the differences between the runs, and not on the builds of any one."
	switch {
	case boots == 0:
		return says + " Some run does not say in which boot it was made: whether the runs say anything of another boot is not known."
	case boots == 1:
		return says + " All were made in one boot: they say nothing of another one."
	case boots < runs:
		return says + fmt.Sprintf(" They were made in %d boots: runs of one boot may be more alike than another boot's.", boots)
	}
	return says + " Each was made in a boot of its own."
}
