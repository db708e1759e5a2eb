package insight

import (
	"math"

	"netdelta/stats"
)

// Reasons for which a trial enters no delta (result.Delta.Excluded); all others are reasons of a round.
const (
	TrialFailed = "trial failed"
	Misrouted   = "misrouted"
	NoBaseline  = "no baseline"
)

// OfTrials are the reasons that count trials; all others count bursts.
func OfTrials() []string { return []string{TrialFailed, Misrouted, NoBaseline} }

// OfBaseline begins the reason of a round that does not count on account of the baseline's bursts.
const (
	OfBaseline = "baseline "
	noRound    = OfBaseline + "has no such round"
)

// pairedBuilds is a cell's metric held against the baseline's, batch by batch.
type pairedBuilds struct {
	builds []stats.Build
	// batches holds, for each build, the index of its batch: deltas of one batch share its baselines.
	batches []int
	// rows holds, for each build, the burst of the cell that each of its deltas is of: of metrics that bursts have.
	rows     [][]int
	excluded map[string]int
	// added are the same builds, each delta a difference in seconds, and seconds is the metric in that unit: nil where only ratios are asked for.
	added   []stats.Build
	seconds *metric
}

// pairBuilds holds a cell against the mean of the others, which are the baseline and its A/A control (or the baseline alone, for the
// null check).
func pairBuilds(m metric, cell string, others []string, all []batch) pairedBuilds {
	return pairedBuilds{excluded: map[string]int{}}.pair(m, cell, others, all)
}

// pairInTime is pairBuilds of a metric of nanoseconds, and says what its differences are in time.
func pairInTime(m metric, cell string, others []string, all []batch) pairedBuilds {
	seconds := inSeconds(m)
	return pairedBuilds{excluded: map[string]int{}, seconds: &seconds}.pair(m, cell, others, all)
}

func (p pairedBuilds) pair(m metric, cell string, others []string, all []batch) pairedBuilds {
	p.builds, p.batches, p.rows = make([]stats.Build, 0, len(all)), make([]int, 0, len(all)), make([][]int, 0, len(all))
	if p.seconds != nil {
		p.added = make([]stats.Build, 0, len(all))
	}
	for i, s := range all {
		trial := s[cell]
		if trial == nil {
			continue
		}
		if reason := trial.excluded(); reason != "" {
			p.excluded[reason]++
			continue
		}
		var against []*summary
		for _, id := range others {
			if other := s.good(id); other != nil {
				against = append(against, other)
			}
		}
		if len(against) == 0 {
			p.excluded[NoBaseline]++
			continue
		}
		switch beside, across := trial.stand(against); {
		case across:
			p.addFigures(i, m, (*metric).ofVisit, trial, against)
		case m.ofBursts():
			p.addRounds(i, m, trial, beside)
		default:
			p.addFigures(i, m, (*metric).ofTrial, trial, beside)
		}
	}
	return p
}

// addRounds adds a build whose deltas are paired round by round.
func (p *pairedBuilds) addRounds(batch int, m metric, trial *summary, against []*summary) {
	own, base := m.read(trial), m.mean(against)
	n := len(own.rounds)
	build, rows := stats.Build{Deltas: m.floats(n)[:0], HalfGaps: m.floats(n)[:0]}, m.rows(n)[:0]
	var added stats.Build
	if p.seconds != nil {
		added = stats.Build{Deltas: m.floats(n)[:0], HalfGaps: m.floats(n)[:0]}
	}
	at := 0
	for place, round := range own.rounds {
		why := own.why(place)
		if why == "" {
			var found bool
			if at, found = base.seek(round, at); !found {
				why = noRound
			} else {
				why = base.why(at)
			}
		}
		if why != "" {
			p.excluded[why]++
			continue
		}
		r := paired(own, base, place, at, m.linear)
		build.Deltas, build.HalfGaps, rows = append(build.Deltas, r.delta), append(build.HalfGaps, r.gap), append(rows, trial.row(place))
		if own.split != nil && base.split != nil {
			build.Within = append(build.Within, own.split[place]-base.split[at])
		}
		if p.seconds != nil {
			added.Deltas, added.HalfGaps = append(added.Deltas, r.seconds), append(added.HalfGaps, r.secondsGap)
		}
	}
	p.add(batch, build, added, rows)
}

// roundDelta is a burst against the baseline's two of its round, and half of what these two differ by; and both in seconds.
type roundDelta struct{ delta, gap, seconds, secondsGap float64 }

// paired holds a burst against the mean of others. In the same sweeps their levels are compared: as they are, or as the time that they mean
// at the baseline's.
func paired(own, base *readings, place, at int, linear bool) (r roundDelta) {
	scaled, other := own.scaled[place], base.scaled[at]
	if base.gap != nil {
		r.gap = base.gap[at]
	}
	inTime := base.seconds != nil
	if inTime {
		r.seconds = own.values[place]/second - base.seconds[at]
	}
	if base.secondsGap != nil {
		r.secondsGap = base.secondsGap[at]
	}
	if own.level != nil && base.level != nil && own.starts[place] == base.starts[at] && !math.IsNaN(base.level[at]) {
		level, gap := own.level[place]-base.level[at], 0.0
		if base.levelGap != nil {
			gap = base.levelGap[at]
		}
		switch {
		case linear:
			scaled, r.gap = other*math.Exp(level), other*gap
		default:
			scaled, other, r.gap = own.level[place], base.level[at], gap
		}
		if inTime && !linear {
			r.seconds, r.secondsGap = base.seconds[at]*math.Exp(level)-base.seconds[at], base.seconds[at]*gap
		}
	}
	r.delta = scaled - other
	return r
}

// ofTrial is the figure of a trial that has no bursts.
func (m *metric) ofTrial(s *summary) reading { return m.reading(m.trial(s)) }

// addFigures adds a build in which each trial has a single figure, as read gives it.
func (p *pairedBuilds) addFigures(batch int, m metric, read func(*metric, *summary) reading, trial *summary, against []*summary) {
	build, reason := figuresPaired(&m, read, trial, against)
	if reason != "" {
		p.excluded[reason]++
		return
	}
	var added stats.Build
	if p.seconds != nil {
		added, _ = figuresPaired(p.seconds, read, trial, against)
	}
	p.add(batch, build, added, nil)
}

// figuresPaired is a build of trials with a single figure each, or why there is none.
func figuresPaired(m *metric, read func(*metric, *summary) reading, trial *summary, against []*summary) (stats.Build, string) {
	own, base := read(m, trial), 0.0
	if own.reason != "" {
		return stats.Build{}, own.reason
	}
	for _, a := range against {
		r := read(m, a)
		if r.reason != "" {
			return stats.Build{}, OfBaseline + r.reason
		}
		base += r.scaled / float64(len(against))
	}
	return stats.Build{Deltas: []float64{own.scaled - base}}, ""
}

// add keeps a build that has any rounds.
func (p *pairedBuilds) add(batch int, build, added stats.Build, rows []int) {
	if len(build.Deltas) == 0 {
		return
	}
	p.builds = append(p.builds, build)
	if p.seconds != nil {
		p.added = append(p.added, added)
	}
	p.batches, p.rows = append(p.batches, batch), append(p.rows, rows)
}

// typical is the metric's value in some cells, the baseline and its A/A control: the median over builds of the medians over
// rounds, in the metric's unit; 0 if there is none.
func typical(m metric, cells []string, all []batch) float64 {
	var builds []float64
	for _, s := range all {
		for _, id := range cells {
			if trial := s.good(id); trial != nil {
				if values := m.values(trial); len(values) > 0 {
					builds = append(builds, stats.Median(values))
				}
			}
		}
	}
	if len(builds) == 0 {
		return 0
	}
	return stats.Median(builds)
}

// figures are what some cells measured, a figure for each trial, on the scale of comparison.
func figures(m metric, cells []string, all []batch) []float64 {
	var list []float64
	for _, s := range all {
		for _, id := range cells {
			trial := s.good(id)
			if trial == nil {
				continue
			}
			if values := m.values(trial); len(values) > 0 {
				if x, reason := m.scale(stats.Median(values)); reason == "" {
					list = append(list, x)
				}
			}
		}
	}
	return list
}

// values are the metric's values in a trial that count. They may not be changed.
func (m *metric) values(s *summary) []float64 {
	if !m.ofBursts() {
		if r := m.ofTrial(s); r.reason == "" {
			return []float64{r.value}
		}
		return nil
	}
	r := m.read(s)
	if r.reasons == nil {
		return r.values
	}
	values := make([]float64, 0, len(r.values))
	for place, v := range r.values {
		if r.why(place) == "" {
			values = append(values, v)
		}
	}
	return values
}

// reading is one value: as it is, and on the scale of comparison.
type reading struct {
	value, scaled float64
	reason        string // why it does not count, "" if it does
}

// reading makes one of a value unless there is a reason against it.
func (m *metric) reading(value float64, reason string) reading {
	if reason != "" {
		return reading{reason: reason}
	}
	if m.divide != 0 {
		value /= m.divide
	}
	scaled, reason := m.scale(value)
	return reading{value: value, scaled: scaled, reason: reason}
}
