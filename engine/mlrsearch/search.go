package mlrsearch

import (
	"fmt"
	"math"
	"time"
)

// Trial sends at a rate for a time, and says what came of it. The path must be empty again when it returns. An error ends
// the search.
type Trial func(rate float64, duration time.Duration) (Outcome, error)

// Found is what a search found for one goal. Rates are in the unit of the trials'.
type Found struct {
	// Lower is the highest rate that met the goal (the relevant lower bound); 0 when none did.
	Lower float64
	// Upper is the lowest rate that failed it (the relevant upper bound); 0 when none did.
	Upper float64
	// AtLeast says that Upper, or the lack of one, is the sender's doing: the network may carry more than Lower.
	AtLeast bool
	// Narrow says that the bounds are as close as the goal asked; otherwise the search ended before, and they are the best
	// so far.
	Narrow bool
}

// Result is what a search found, goal by goal, and what it took.
type Result struct {
	Found   []Found
	Trials  int
	Elapsed time.Duration
}

// Search looks for the highest rates that meet the goals. It fails when a trial fails, or when the configuration makes no
// sense. A search that runs out of trials or time is no error.
func Search(c Config, run Trial) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, fmt.Errorf("search of a rate: %w", err)
	}
	s := &search{config: c, run: run, loads: map[int]*load{}}
	if err := s.start(); err != nil {
		return Result{}, err
	}
	for {
		q, place, more := s.next()
		if !more || !s.affords(q.phases[q.now].duration) {
			break
		}
		if err := s.measure(q, place); err != nil {
			return Result{}, err
		}
	}
	return s.result(), nil
}

// search is the state of a search. Its rates are places on a grid: anchor * exp(step*place), a step being the width of the
// narrowest goal, so that rates are the same to the bit whenever they come up again.
type search struct {
	config  Config
	run     Trial
	step    float64
	anchor  float64
	top     int // the highest place
	bottom  int // the lowest place
	loads   map[int]*load
	quests  []*quest
	trials  int
	elapsed time.Duration
}

// quest is the way to one goal.
type quest struct {
	phases []phase
	now    int // the phase; len(phases) when all are done
	// from and reach are where a bound was sought last, and how far from there; 0 is not yet.
	from, reach int
	spent       time.Duration // on trials that this goal asked for
}

func (q *quest) done() bool { return q.now == len(q.phases) }

// start runs the first trial, at the highest rate. The rate at which its datagrams arrive is the best guess, and the grid is
// laid from there: searches that are repeated look at other rates each time.
func (s *search) start() error {
	narrowest := s.config.Goals[0].Width
	shortest := s.config.Goals[0].Initial
	for _, g := range s.config.Goals {
		narrowest, shortest = min(narrowest, g.Width), min(shortest, g.Initial)
	}
	s.step = -math.Log1p(-narrowest)
	o, err := s.try(s.config.Most, shortest)
	if err != nil {
		return err
	}
	s.anchor = min(max(o.Rate, s.config.Least), s.config.Most)
	if !(s.anchor > 0) { // not a number
		s.anchor = s.config.Least
	}
	s.top = int(math.Floor(math.Log(s.config.Most/s.anchor)/s.step + 1e-9))
	s.bottom = -int(math.Floor(math.Log(s.anchor/s.config.Least)/s.step + 1e-9))
	for _, g := range s.config.Goals {
		width := max(int(math.Floor(-math.Log1p(-g.Width)/s.step+1e-9)), 1)
		s.quests = append(s.quests, &quest{phases: g.phases(width)})
	}
	if s.rate(s.top) >= s.config.Most*(1-1e-9) {
		s.note(s.top, shortest, o)
	}
	return nil
}

func (s *search) rate(place int) float64 { return s.anchor * math.Exp(s.step*float64(place)) }

// place is the highest place whose rate is not above the given one.
func (s *search) place(rate float64) int {
	if !(rate > s.rate(s.bottom)) {
		return s.bottom
	}
	return min(int(math.Floor(math.Log(rate/s.anchor)/s.step+1e-9)), s.top)
}

func (s *search) affords(d time.Duration) bool {
	return s.trials < s.config.Trials && s.elapsed+d <= s.config.Time
}

func (s *search) try(rate float64, d time.Duration) (Outcome, error) {
	o, err := s.run(rate, d)
	if err != nil {
		return o, fmt.Errorf("trial %d of a search, at a rate of %.6g for %v: %w", s.trials+1, rate, d, err)
	}
	s.trials++
	s.elapsed += max(o.Elapsed, d)
	return o, nil
}

func (s *search) measure(q *quest, place int) error {
	d, before := q.phases[q.now].duration, s.elapsed
	o, err := s.try(s.rate(place), d)
	if err != nil {
		return err
	}
	q.spent += s.elapsed - before
	s.note(place, d, o)
	return nil
}

func (s *search) note(place int, d time.Duration, o Outcome) {
	l := s.loads[place]
	if l == nil {
		l = &load{}
		s.loads[place] = l
	}
	l.rate = o.Rate
	l.trials = append(l.trials, trial{duration: d, loss: o.Loss, starved: o.Sent <= 0 || o.unsent() > s.config.Unsent})
}

// bounds are the lowest place that is an upper bound in a phase, and the highest lower bound below it.
func (s *search) bounds(p phase) (low, high int, haveLow, haveHigh bool) {
	limit := math.MaxInt
	for place, l := range s.loads {
		if place < limit && l.classify(p) == upper {
			limit = place
		}
	}
	low, haveLow = s.below(p, limit)
	return low, limit, haveLow, limit < math.MaxInt
}

// next is the trial that is needed most: one for the coarsest phase that any goal is in, so that wide bounds of all goals
// come first and the trials of one serve the others. A goal that has had its part of the time waits until the others are done:
// the rate without loss may lie where no search finds it.
func (s *search) next() (q *quest, place int, more bool) {
	share := s.config.Time / time.Duration(len(s.quests))
	for {
		q = nil
		for _, o := range s.quests {
			if o.done() {
				continue
			}
			if q == nil || q.spent > share && o.spent <= share || (q.spent > share) == (o.spent > share) && o.now < q.now {
				q = o
			}
		}
		if q == nil {
			return nil, 0, false
		}
		if place, found := s.candidate(q); found {
			return q, place, true
		}
		q.now++
		q.reach = 0
	}
}

// candidate is the place that a goal wants tried next in its phase; none when the phase is done.
func (s *search) candidate(q *quest) (place int, found bool) {
	p := q.phases[q.now]
	low, high, haveLow, haveHigh := s.bounds(p)
	guessLow, guessHigh, haveGuessLow, haveGuessHigh := s.guess(q)
	inside := func(place int) bool {
		return (!haveLow || place > low) && (!haveHigh || place < high)
	}
	switch {
	case haveHigh && high <= s.bottom, haveLow && low >= s.top:
		return 0, false
	case haveLow && haveHigh && high-low <= p.width:
		return 0, false
	case haveGuessLow && inside(guessLow):
		return guessLow, true
	case haveGuessHigh && inside(guessHigh):
		return guessHigh, true
	case !haveHigh:
		return min(low+s.stretch(q, low), s.top), true
	case !haveLow:
		down := high - s.stretch(q, high)
		if q.reach == p.width {
			// What arrived of too much is a better guess than the next step.
			down = min(down, s.place(s.loads[high].rate))
		}
		return max(down, s.bottom), true
	}
	return s.divide(p, low, high), true
}

// guess is where the phase before found its bounds; before the first phase, the place of the first trial's rate is all that
// is known.
func (s *search) guess(q *quest) (low, high int, haveLow, haveHigh bool) {
	if q.now == 0 {
		return 0, 0, true, false
	}
	return s.bounds(q.phases[q.now-1])
}

// stretch is how far to go from a bound to find the other one: further each time that the bound has moved, but not so far
// that the rate changes more than fourfold.
func (s *search) stretch(q *quest, from int) int {
	width := q.phases[q.now].width
	switch {
	case q.reach == 0:
		q.reach = width
	case from != q.from:
		q.reach = min(q.reach*expansion, max(int(math.Log(4)/s.step), width))
	}
	q.from = from
	return q.reach
}

// divide is a place between two bounds: one that was tried already if it lies in the middle half, else the middle.
func (s *search) divide(p phase, low, high int) int {
	middle := low + (high-low)/2
	best, distance := middle, (high-low)/4+1
	for place, l := range s.loads {
		if place <= low || place >= high || l.classify(p) != undecided {
			continue
		}
		if away := max(place-middle, middle-place); away < distance || away == distance && place < best {
			best, distance = place, away
		}
	}
	return best
}

// result is what is known when the search ends: for each goal from the last phase that found a lower bound.
func (s *search) result() Result {
	r := Result{Trials: s.trials, Elapsed: s.elapsed}
	least := math.Inf(-1)
	for i, g := range s.config.Goals {
		f := s.found(s.quests[i], g)
		// What loses nothing loses no more than a little either, even if a phase less is known of it.
		f.Lower = max(f.Lower, least)
		least = f.Lower
		r.Found = append(r.Found, f)
	}
	return r
}

func (s *search) found(q *quest, g Goal) Found {
	f := Found{Narrow: q.done()}
	limit := math.MaxInt
	for i := min(q.now, len(q.phases)-1); i >= 0 && f.Lower == 0; i-- {
		if _, high, _, have := s.bounds(q.phases[i]); have && f.Upper == 0 {
			limit, f.Upper, f.AtLeast = high, s.rate(high), s.loads[high].starved(g)
		}
		if low, have := s.below(q.phases[i], limit); have {
			f.Lower = s.rate(low)
		}
	}
	f.AtLeast = f.Lower > 0 && (f.AtLeast || f.Upper == 0)
	return f
}

// below is the highest place under a limit that is a lower bound in a phase.
func (s *search) below(p phase, limit int) (low int, found bool) {
	for place, l := range s.loads {
		if place < limit && (!found || place > low) && l.classify(p) == lower {
			low, found = place, true
		}
	}
	return low, found
}
