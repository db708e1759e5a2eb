package stats

import "math"

// Places are where a cell's bursts lie against its baseline's, on the log scale: the mean of all, the middle (the estimate's
// Center), and the typical one, which is the median.
type Places struct{ Mean, Center, Typical float64 }

// unevenLevel is how often any of the tests of a run may find unevenness in one that has none.
const unevenLevel = 0.01

// Uneven says of builds, whose deltas are judged together with so many others (tests), that the mean burst and the typical one differ by
// more than least. The difference of two bursts is symmetric about the truth whatever their noise is, as long as the cell and its
// baseline scatter alike: mean and median are then one. If they are not, the cell scatters otherwise, or other bursts were left out.
func Uneven(builds []Build, tests int, least float64) (Places, bool) {
	var p Places
	var gaps []float64
	for _, b := range builds {
		b = b.believable()
		pairs := b.pairs()
		if len(pairs) == 0 {
			continue
		}
		mean, typical := Mean(pairs), Median(pairs)
		gaps = append(gaps, mean-typical)
		p.Mean, p.Center, p.Typical = p.Mean+mean, p.Center+b.location(), p.Typical+typical
	}
	n := float64(len(gaps))
	p = Places{p.Mean / n, p.Center / n, p.Typical / n}
	return p, Systematic(gaps, tests, least)
}

// Systematic says that differences, one for each build, have a mean beyond +-least that chance does not explain, as one of so many
// tests.
func Systematic(differences []float64, tests int, least float64) bool {
	e := Estimate{Locations: differences}
	return math.Abs(Mean(differences)) > least && e.PAgainst(0)*float64(max(tests, 1)) < unevenLevel
}
