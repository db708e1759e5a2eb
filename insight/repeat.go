package insight

import (
	"netdelta/result"
	"netdelta/stats"
)

// Repeated is a delta that several runs have, with what they say of another run: on another day, or after another boot.
type Repeated struct {
	// Delta is as the last run has it.
	Delta result.Delta
	// Figures are the runs' own, in their order: ratios, or differences where Linear.
	Figures []float64
	Linear  bool
	// Prediction is on the scale of Figures. Enough says that there were runs enough for one.
	Prediction stats.Prediction
	Enough     bool
}

// Boots is how many boots runs were made in; 0 where some run does not say in which.
func Boots(runs []Measured) int {
	seen := map[string]bool{}
	for _, m := range runs {
		seen[m.Run.Environment.Boot] = true
	}
	if seen[""] {
		return 0
	}
	return len(seen)
}

// Repeat says what several runs say of another one: of each delta that at least two of them have, in the order of the last run.
func (j Judge) Repeat(runs []Measured, o Comparing) []Repeated {
	var order []identity
	figures, last := map[identity][]float64{}, map[identity]delta{}
	confidence := 0.0
	for i := len(runs) - 1; i >= 0; i-- {
		confidence = max(confidence, runs[i].Run.Confidence)
		for _, d := range j.deltas(runs[i], o) {
			k := d.identity()
			if _, known := last[k]; !known {
				order, last[k] = append(order, k), d
			}
			figures[k] = append([]float64{d.contrast.estimate.Center}, figures[k]...)
		}
	}
	var all []Repeated
	for _, k := range order {
		if len(figures[k]) < 2 {
			continue
		}
		m := last[k].contrast.metric
		r := Repeated{Delta: last[k].judged, Linear: m.linear}
		for _, x := range figures[k] {
			r.Figures = append(r.Figures, m.amount(x))
		}
		r.Prediction, r.Enough = stats.Predict(figures[k], stats.Options{Confidence: confidence})
		for _, x := range []*float64{&r.Prediction.Center, &r.Prediction.Low, &r.Prediction.High, &r.Prediction.NextLow, &r.Prediction.NextHigh} {
			*x = m.amount(*x)
		}
		all = append(all, r)
	}
	return all
}
