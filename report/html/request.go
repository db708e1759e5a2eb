package html

import (
	"strconv"
	"time"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// The request that the page begins with; its reader chooses another.
const (
	requestTook  = 2 * time.Millisecond
	requestCalls = 8
)

// requested is what the networks of one setting are of a request.
type requested struct {
	Load, Where string
	Rows        []requestRow
}

// requestRow is a network's, with what one call adds in nanoseconds, from which the script computes it for another request.
type requestRow struct {
	words.RequestLine
	Each, Low, High string
}

// Requests are what each network is of the request that the page begins with, nil where no round trips were measured.
func (p *page) Requests() []requested {
	each := insight.Request{Took: 1, Calls: 1}.Shares(p.Run)
	i := 0
	var all []requested
	for at, own := range insight.By(p.request().Shares(p.Run), func(s insight.RequestShare) result.Setting { return s.Delta.Setting }) {
		r := requested{Load: words.Load(at), Where: words.At(at.Placement)}
		for _, s := range own {
			row := requestRow{RequestLine: words.Request(s, p.Run.Margin), Each: exactly(each[i].Added)}
			if s.Known {
				row.Low, row.High = exactly(each[i].AddedLow), exactly(each[i].AddedHigh)
			}
			r.Rows = append(r.Rows, row)
			i++
		}
		all = append(all, r)
	}
	return all
}

// RequestTook and RequestCalls are the request that the page begins with.
func (p *page) RequestTook() string { return requestTook.String() }

// RequestCalls is the number of its calls.
func (p *page) RequestCalls() int { return requestCalls }

func (p *page) request() insight.Request {
	return insight.Request{Took: float64(requestTook), Calls: requestCalls}
}

// exactly is a number with all its digits.
func exactly(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
