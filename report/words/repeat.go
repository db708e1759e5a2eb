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

// RepeatedSays tells the two intervals from each other.
func RepeatedSays(all []insight.Repeated) string {
	if len(all) == 0 {
		return "No delta is in two of the runs: there is nothing to predict."
	}
	return "The mean's interval is where many such runs lie on average. The other is where one more run will lie, on a day and after a boot like " +
		"these: take it for what you may see yourself. Both rest on the differences between the runs, and not on the builds of any one."
}
