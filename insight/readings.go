package insight

import (
	"math"

	"netdelta/internal/gather"
)

// readings are a trial's bursts in one metric, in the order of rounds; or, of two trials, the means of what both have of each round.
type readings struct {
	rounds []int
	// values are as they were measured, scaled are on the scale of comparison.
	values, scaled []float64
	// split is the noise within bursts; nil where it was not measured.
	split []float64
	// level, of bursts in sweeps, is theirs, and starts are when the sweeps began, by which those are known that were visited in the same
	// ones. It is nil where nothing was swept, and NaN where two trials were not in the same sweeps.
	level  []float64
	starts []int64
	// reasons are why bursts don't count, "" of those that do; nil where all do.
	reasons []string
	// Of means: gap and levelGap are half of what the two differ by, nil of one alone. seconds and secondsGap are the same of the values of
	// metrics of nanoseconds.
	gap, levelGap, seconds, secondsGap []float64
}

// why is why a burst does not count, "" if it does.
func (r *readings) why(place int) string {
	if r.reasons == nil {
		return ""
	}
	return r.reasons[place]
}

// exclude notes that a burst does not count.
func (r *readings) exclude(place int, why string) {
	if r.reasons == nil {
		r.reasons = make([]string, len(r.rounds))
	}
	r.reasons[place] = why
}

// seek goes forward from a place to a round; rounds must be asked for in ascending order.
func (r *readings) seek(round, from int) (place int, found bool) {
	for from < len(r.rounds) && r.rounds[from] < round {
		from++
	}
	return from, from < len(r.rounds) && r.rounds[from] == round
}

// memo lends a metric the memory of readings while a setting is judged: it is nil afterwards, since metrics outlive that.
type memo struct{ *memory }

// memory are readings in one metric that were made, since all networks of a setting are held against the same baselines, and the memory
// for them and for what is paired of them. One goroutine has it at a time.
type memory struct {
	own    map[*summary]*readings
	means  map[[2]*summary]*readings
	made   room[readings]
	floats room[float64]
	rows   room[int]
}

// remembering has a setting judged in a metric that remembers its readings. Nothing that is paired of them is left afterwards.
func (b *basis) remembering(m metric, judge func(m metric)) {
	lent, _ := b.memos.Get().(*memory)
	if lent == nil {
		lent = &memory{own: map[*summary]*readings{}, means: map[[2]*summary]*readings{}}
	}
	m.memo = &memo{lent}
	judge(m)
	m.memo.memory = nil
	clear(lent.own)
	clear(lent.means)
	lent.made.empty()
	lent.floats.empty()
	lent.rows.empty()
	b.memos.Put(lent)
}

// remembers says whether readings are kept.
func (m *metric) remembers() bool { return m.memo != nil && m.memo.memory != nil }

// made puts readings in memory.
func (m *metric) made(r readings) *readings {
	if !m.remembers() {
		return &r
	}
	at := &m.memo.made.take(1)[0]
	*at = r
	return at
}

// floats is memory for so many values, whatever is in it.
func (m *metric) floats(n int) []float64 {
	if !m.remembers() {
		return make([]float64, n)
	}
	return m.memo.floats.take(n)
}

// rows is memory for so many rows.
func (m *metric) rows(n int) []int {
	if !m.remembers() {
		return make([]int, n)
	}
	return m.memo.rows.take(n)
}

// room is memory that is handed out in pieces and used again as a whole: a large run would leave gigabytes to collect.
type room[T any] struct {
	chunks   [][]T
	at, used int // the chunk, and how much of it
}

func (r *room[T]) empty() { r.at, r.used = 0, 0 }

func (r *room[T]) take(n int) []T {
	const chunk = 1 << 8
	for ; r.at < len(r.chunks); r.at, r.used = r.at+1, 0 {
		if c := r.chunks[r.at][r.used:]; n <= len(c) {
			r.used += n
			return c[:n:n]
		}
	}
	r.chunks = append(r.chunks, make([]T, max(n, chunk)))
	return r.take(n)
}

// read reads the bursts of a trial.
func (m *metric) read(s *summary) *readings {
	if !m.remembers() {
		return m.readAnew(s)
	}
	r := m.memo.own[s]
	if r == nil {
		r = m.readAnew(s)
		m.memo.own[s] = r
	}
	return r
}

func (m *metric) readAnew(s *summary) *readings {
	n := len(s.rounds)
	r := m.made(readings{rounds: inOrder(s, s.rounds), scaled: m.floats(n)})
	if m.name == metricP50 {
		r.split, r.level, r.starts = inOrder(s, s.split), inOrder(s, s.level), inOrder(s, s.starts)
	}
	if r.starts == nil {
		r.level = nil
	}
	column := s.column(m.name)
	if r.values = column[:min(n, len(column))]; s.order != nil || m.divide != 0 {
		r.values = m.floats(n)
	}
	for place := range n {
		row := s.row(place)
		reason := s.why(row)
		switch {
		case reason != "":
		case row >= len(column):
			reason = "not measured"
		default:
			x := m.reading(column[row], "")
			if r.scaled[place], reason = x.scaled, x.reason; s.order != nil || m.divide != 0 {
				r.values[place] = x.value
			}
		}
		if reason != "" {
			r.exclude(place, reason)
		}
	}
	return r
}

// row is the row of the burst at a place in the order of rounds.
func (s *summary) row(place int) int {
	if s.order == nil {
		return place
	}
	return s.order[place]
}

// inOrder is a column in the order of rounds, nil where the trial has none.
func inOrder[T any](s *summary, column []T) []T {
	switch {
	case len(column) != len(s.rounds):
		return nil
	case s.order == nil:
		return column
	}
	return gather.Each(s.order, func(row int) T { return column[row] })
}

// mean is what the others, which are the baseline and its A/A control or one of them, measured in each round. A round counts if all have it
// and it counts in all of them, so that each delta of a batch is held against the same baselines; else it has the reason of the
// first in which it does not.
func (m *metric) mean(others []*summary) *readings {
	if !m.remembers() {
		return m.meanAnew(others)
	}
	key := [2]*summary{others[0], others[len(others)-1]}
	r := m.memo.means[key]
	if r == nil {
		r = m.meanAnew(others)
		m.memo.means[key] = r
	}
	return r
}

func (m *metric) meanAnew(others []*summary) *readings {
	mean := m.alone(others[0])
	for _, other := range others[1:] { // the A/A control, if any
		mean = m.meanOf(mean, m.alone(other))
	}
	return mean
}

// alone is a trial as one that others are held against.
func (m *metric) alone(s *summary) *readings {
	r := *m.read(s)
	own := r.reasons
	r.reasons = nil
	for place, why := range own {
		if why != "" {
			r.exclude(place, OfBaseline+why)
		}
	}
	if m.unit == "ns" {
		r.seconds = m.floats(len(r.rounds))
		for place, v := range r.values {
			r.seconds[place] = v / second
		}
	}
	return m.made(r)
}

// meanOf is the mean of two that others are held against.
func (m *metric) meanOf(a, b *readings) *readings {
	mean := m.made(readings{rounds: a.rounds, starts: a.starts, reasons: a.reasons})
	places := m.rows(len(a.rounds)) // in b
	from := 0
	for place, round := range a.rounds {
		var found bool
		from, found = b.seek(round, from)
		places[place] = from
		switch {
		case !found:
			places[place] = 0 // whatever is there: it does not count
			if mean.why(place) == "" {
				mean.exclude(place, noRound)
			}
		case mean.why(place) == "" && b.why(from) != "":
			mean.exclude(place, b.why(from))
		}
	}
	half := func(x, y []float64) (mid, gap []float64) {
		if len(x) == 0 || len(y) == 0 {
			return nil, nil
		}
		mid, gap = m.floats(len(x)), m.floats(len(x))
		for i, k := range places {
			mid[i], gap[i] = x[i]/2+y[k]/2, (x[i]-y[k])/2
		}
		return mid, gap
	}
	mean.scaled, mean.gap = half(a.scaled, b.scaled)
	mean.seconds, mean.secondsGap = half(a.seconds, b.seconds)
	mean.split, _ = half(a.split, b.split)
	mean.level, mean.levelGap = half(a.level, b.level)
	for i := range mean.level {
		if a.starts[i] != b.starts[places[i]] {
			mean.level[i] = math.NaN()
		}
	}
	return mean
}
