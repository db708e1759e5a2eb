package insight

import (
	"cmp"
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
const OfBaseline = "baseline "

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
	cell := newCursor(&m, trial)
	others := make([]cursor, len(against))
	for i, a := range against {
		others[i] = newCursor(&m, a)
	}
	n := len(trial.rounds)
	build, rows := stats.Build{Deltas: make([]float64, 0, n), HalfGaps: make([]float64, 0, n)}, make([]int, 0, n)
	var added stats.Build
	if p.seconds != nil {
		added = stats.Build{Deltas: make([]float64, 0, n), HalfGaps: make([]float64, 0, n)}
	}
	var own reading
	for i := range n {
		row := cell.row(i)
		cell.read(row, &own)
		if own.reason != "" {
			p.excluded[own.reason]++
			continue
		}
		base := meanOfRound(others, trial.rounds[row])
		if base.reason != "" {
			p.excluded[base.reason]++
			continue
		}
		if own.swept && base.swept && own.start == base.start {
			byLevel(m, &own, &base)
		}
		build.Deltas = append(build.Deltas, own.scaled-base.scaled)
		rows = append(rows, row)
		build.HalfGaps = append(build.HalfGaps, base.halfGap)
		if own.hasSplit && base.hasSplit {
			build.Within = append(build.Within, own.split-base.split)
		}
		if p.seconds != nil {
			added.Deltas, added.HalfGaps = append(added.Deltas, own.seconds-base.seconds), append(added.HalfGaps, base.secondsGap)
		}
	}
	p.add(batch, build, added, rows)
}

// byLevel has two readings of the same sweeps compared by their levels: as they are, or as the time that they mean at the baseline's.
func byLevel(m metric, own, base *reading) {
	if m.linear {
		own.scaled, base.halfGap = base.scaled*math.Exp(own.level-base.level), base.scaled*base.levelGap
		return
	}
	own.scaled, base.scaled, base.halfGap = own.level, base.level, base.levelGap
	own.seconds, base.secondsGap = base.seconds*math.Exp(own.level-base.level), base.seconds*base.levelGap
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
	own := read(m, trial)
	readings := make([]reading, len(against))
	for i, a := range against {
		readings[i] = read(m, a)
	}
	base := average(readings)
	if reason := cmp.Or(own.reason, base.reason); reason != "" {
		return stats.Build{}, reason
	}
	return stats.Build{Deltas: []float64{own.scaled - base.scaled}}, ""
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

// values are the metric's values in a trial that count.
func (m *metric) values(s *summary) []float64 {
	values := make([]float64, 0, len(s.rounds))
	add := func(r *reading) {
		if r.reason == "" {
			values = append(values, r.value)
		}
	}
	if !m.ofBursts() {
		r := m.ofTrial(s)
		add(&r)
		return values
	}
	c := newCursor(m, s)
	var r reading
	for i := range s.rounds {
		c.read(c.row(i), &r)
		add(&r)
	}
	return values
}

// reading is one value: as it is, on the scale of comparison, and with the noise within its burst.
type reading struct {
	value, scaled, split float64
	hasSplit             bool
	halfGap              float64 // half of what two averaged readings differ by, on the scale of comparison
	reason               string  // why it does not count, "" if it does
	// Of metrics of nanoseconds: the value, and the half of what two differ by.
	seconds, secondsGap float64
	// Of bursts in sweeps: the level, and when the sweeps began, by which those are known that were visited in the same ones.
	swept           bool
	level, levelGap float64
	start           int64
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
	return reading{value: value, scaled: scaled, seconds: value / second, reason: reason}
}

// average is the mean of readings. It counts if all of them do, so that each delta of a batch is held against the same
// baselines; else it has the reason of the first that does not.
func average(readings []reading) reading {
	sum := reading{hasSplit: true, swept: true, start: readings[0].start}
	for i := range readings {
		r := &readings[i]
		if r.reason != "" {
			return reading{reason: OfBaseline + r.reason}
		}
		n := float64(len(readings))
		sum.scaled += r.scaled / n
		sum.seconds += r.seconds / n
		sum.split += r.split / n
		sum.hasSplit = sum.hasSplit && r.hasSplit
		sum.level += r.level / n
		sum.swept = sum.swept && r.swept && r.start == sum.start
	}
	if len(readings) == 2 {
		sum.halfGap = (readings[0].scaled - readings[1].scaled) / 2
		sum.secondsGap = (readings[0].seconds - readings[1].seconds) / 2
		sum.levelGap = (readings[0].level - readings[1].level) / 2
	}
	return sum
}

// meanOfRound is the average of the others' bursts of a round.
func meanOfRound(others []cursor, round int) reading {
	var readings [2]reading // the baseline and its A/A control: this runs for every burst, and must not allocate
	for i := range others {
		if row, ok := others[i].seek(round); ok {
			others[i].read(row, &readings[i])
		} else {
			readings[i] = reading{reason: "has no such round"}
		}
	}
	return average(readings[:len(others)])
}

// cursor walks through the bursts of a trial in the order of rounds.
type cursor struct {
	metric *metric
	median bool // it is of p50
	trial  *summary
	column []float64
	at     int
}

func newCursor(m *metric, s *summary) cursor {
	return cursor{metric: m, median: m.name == metricP50, trial: s, column: s.column(m.name)}
}

// row is the row of the burst at a place in the order of rounds.
func (c *cursor) row(place int) int {
	if c.trial.order == nil {
		return place
	}
	return c.trial.order[place]
}

// seek goes forward to a round; rounds must be asked for in ascending order.
func (c *cursor) seek(round int) (row int, ok bool) {
	rounds := c.trial.rounds
	for c.at < len(rounds) && rounds[c.row(c.at)] < round {
		c.at++
	}
	if c.at == len(rounds) || rounds[c.row(c.at)] != round {
		return 0, false
	}
	return c.row(c.at), true
}

// read makes the reading of one burst, in its place: it is made for every burst many times.
func (c *cursor) read(row int, r *reading) {
	s := c.trial
	if r.reason = s.why(row); r.reason != "" {
		return
	}
	if row >= len(c.column) {
		r.reason = "not measured"
		return
	}
	*r = c.metric.reading(c.column[row], "")
	if !c.median {
		return
	}
	if row < len(s.split) {
		r.split, r.hasSplit = s.split[row], true
	}
	if row < len(s.level) {
		r.swept, r.level, r.start = true, s.level[row], s.starts[row]
	}
}
