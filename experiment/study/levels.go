package study

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// level is one level of one parameter.
type level struct {
	key  string // as in the file: "message"
	path string // "message[1]"
	text string // as the user would write it
	set  func(*result.Params)
}

// factors lists the parameters that have levels, each with its levels, in a fixed order.
func (l Levels) factors() [][]level {
	all := [][]level{
		collect("message", l.Message, bytesText, func(p *result.Params, v unit.Bytes) { p.Message = v }),
		collect("connections", l.Connections, strconv.Itoa, func(p *result.Params, v int) { p.Connections = v }),
		collect("rate", l.Rate, rateText, setRate),
		collect("request_rate", l.RequestRate, floatText, func(p *result.Params, v float64) { p.RequestRate = v }),
		collect("cpu", l.CPU, stringText, func(p *result.Params, v string) { p.CPU = v }),
		collect("busy_poll", l.BusyPoll, FormatDuration, func(p *result.Params, v time.Duration) { p.BusyPoll = v }),
		collect("congestion_control", l.CongestionControl, stringText, func(p *result.Params, v string) { p.CongestionControl = v }),
		collect("nagle", l.Nagle, strconv.FormatBool, func(p *result.Params, v bool) { p.Nagle = v }),
		collect("mtu", l.MTU, bytesText, func(p *result.Params, v unit.Bytes) { p.MTU = v }),
		collect("family", l.Family, familyText, setFamily),
	}
	var given [][]level
	for _, f := range all {
		if len(f) > 0 {
			given = append(given, f)
		}
	}
	return given
}

// SearchRate is the level of rate that is written as "search": the highest rate is searched for. It is no rate that could
// be written.
const SearchRate unit.BitsPerSecond = -math.MaxFloat64

func setRate(p *result.Params, v unit.BitsPerSecond) {
	p.Rate, p.Search = v, v == SearchRate
	if p.Search {
		p.Rate = 0
	}
}

// setFamily leaves out IPv4, which is the default: so that a cell has one name, whether its study speaks of families or not.
func setFamily(p *result.Params, v result.Family) {
	if v != result.IPv4 {
		p.Family = v
	}
}

func collect[T any](key string, values []T, text func(T) string, set func(*result.Params, T)) []level {
	levels := make([]level, len(values))
	for i, v := range values {
		levels[i] = level{
			key: key, path: fmt.Sprintf("%s[%d]", key, i), text: text(v),
			set: func(p *result.Params) { set(p, v) },
		}
	}
	return levels
}

// Count is how many combinations of levels there are: at least 1.
func (l Levels) Count() int {
	n := 1
	for _, f := range l.factors() {
		if n > maxCells {
			return n // the product could overflow, and is refused anyway
		}
		n *= len(f)
	}
	return n
}

// Combinations returns every combination of the levels; the last parameter varies fastest. Without any level it is the
// one combination in which every parameter has its default.
func (l Levels) Combinations() []result.Params {
	all := []result.Params{{}}
	for _, f := range l.factors() {
		next := make([]result.Params, 0, len(all)*len(f))
		for _, p := range all {
			for _, lv := range f {
				q := p
				lv.set(&q)
				next = append(next, q)
			}
		}
		all = next
	}
	return all
}

// Join returns the levels of l and of more together. Where both give levels of a parameter, those of l hold.
func (l Levels) Join(more Levels) Levels {
	return Levels{
		Message:           either(l.Message, more.Message),
		Connections:       either(l.Connections, more.Connections),
		Rate:              either(l.Rate, more.Rate),
		RequestRate:       either(l.RequestRate, more.RequestRate),
		CPU:               either(l.CPU, more.CPU),
		BusyPoll:          either(l.BusyPoll, more.BusyPoll),
		CongestionControl: either(l.CongestionControl, more.CongestionControl),
		Nagle:             either(l.Nagle, more.Nagle),
		MTU:               either(l.MTU, more.MTU),
		Family:            either(l.Family, more.Family),
	}
}

func either[T any](a, b []T) []T {
	if len(a) > 0 {
		return a
	}
	return b
}

// WithDefaults fills in what p leaves unset from a workload's defaults.
func WithDefaults(p, defaults result.Params) result.Params {
	fill(&p.Message, defaults.Message)
	fill(&p.Connections, defaults.Connections)
	if !p.Search {
		fill(&p.Rate, defaults.Rate)
	}
	fill(&p.RequestRate, defaults.RequestRate)
	fill(&p.CPU, defaults.CPU)
	fill(&p.BusyPoll, defaults.BusyPoll)
	fill(&p.CongestionControl, defaults.CongestionControl)
	fill(&p.Nagle, defaults.Nagle)
	fill(&p.MTU, defaults.MTU)
	fill(&p.Family, defaults.Family)
	return p
}

func fill[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Clone returns a copy that shares no memory with l.
func (l Levels) Clone() Levels {
	var c Levels
	c.Message = append(c.Message, l.Message...)
	c.Connections = append(c.Connections, l.Connections...)
	c.Rate = append(c.Rate, l.Rate...)
	c.RequestRate = append(c.RequestRate, l.RequestRate...)
	c.CPU = append(c.CPU, l.CPU...)
	c.BusyPoll = append(c.BusyPoll, l.BusyPoll...)
	c.CongestionControl = append(c.CongestionControl, l.CongestionControl...)
	c.Nagle = append(c.Nagle, l.Nagle...)
	c.MTU = append(c.MTU, l.MTU...)
	c.Family = append(c.Family, l.Family...)
	return c
}
