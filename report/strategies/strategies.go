// Package strategies shows runs whose strategies have tables of their own: fleets, pairs and policies.
package strategies

import (
	"fmt"
	"io"
	"strings"

	"netdelta/experiment/pairs"
	"netdelta/experiment/policies"
	"netdelta/insight"
	fleetinsight "netdelta/insight/fleet"
	pairsinsight "netdelta/insight/pairs"
	policiesinsight "netdelta/insight/policies"
	fleetreport "netdelta/report/fleet"
	"netdelta/report/html"
	pairsreport "netdelta/report/pairs"
	policiesreport "netdelta/report/policies"
	"netdelta/result"
	"netdelta/stats"
)

// View is what a strategy makes of a run.
type View struct {
	// Report is what was found, as one JSON document.
	Report any
	// Incomplete says what could not be measured, "" where all was.
	Incomplete string
	// Text writes tables for a terminal, Picture a page of its own; nil for a strategy without one.
	Text, Picture func(io.Writer) error

	title string
	part  func() (html.Option, error)
}

// Of judges a run. It returns nil for a run whose strategy has no tables of its own.
func Of(m insight.Measured) (*View, error) {
	if m.Run.Strategy == nil {
		return nil, nil
	}
	switch m.Run.Strategy.Name {
	case result.StrategyPairs:
		r := pairsinsight.Judge(pairs.Of(m.Run, result.All(m.Trials)), stats.Options{Margin: m.Run.Margin})
		return &View{
			Report:  r,
			Text:    func(w io.Writer) error { return pairsreport.WriteText(w, r) },
			Picture: func(w io.Writer) error { return pairsreport.Write(w, r) },
			part: func() (html.Option, error) {
				style, body, err := pairsreport.Part(r)
				return html.WithPart("Every pair of nodes", style, body), err
			},
		}, nil
	case result.StrategyFleet:
		r, err := fleetinsight.Of(m)
		if err != nil {
			return nil, err
		}
		v := &View{Report: r, title: "All clients together", Text: func(w io.Writer) error { return fleetreport.WriteText(w, r) }}
		failed := 0
		for _, n := range r.Networks {
			failed += n.Failed
		}
		if failed > 0 {
			v.Incomplete = fmt.Sprintf("%d of the clients, pods and builds failed; the figures leave them out", failed)
		}
		return v, nil
	case result.StrategyPolicies:
		r := policiesinsight.Judge(policies.Of(m.Run, result.All(m.Trials)))
		v := &View{Report: r, title: "How soon policies act", Text: func(w io.Writer) error { return policiesreport.WriteText(w, r) }}
		if n := len(r.Failures); n > 0 {
			v.Incomplete = fmt.Sprintf("not all could be measured at %d of the numbers of policies; the figures leave them out", n)
		}
		return v, nil
	}
	return nil, nil
}

// Part is what the strategy adds to the page of the run.
func (v *View) Part() (html.Option, error) {
	if v.part != nil {
		return v.part()
	}
	var text strings.Builder
	err := v.Text(&text)
	return html.WithPart(v.title, "", html.Text(text.String())), err
}
