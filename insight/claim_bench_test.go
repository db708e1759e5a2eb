package insight_test

import (
	"testing"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload/catalogue"
)

// latencyClaims are the claims of the built-in study latency.
func latencyClaims(tb testing.TB) []result.Claim {
	tb.Helper()
	f, _ := studies.Find("latency")
	known := study.Known{Testbeds: []string{"lab"}}
	for _, n := range network.Catalogue() {
		known.Networks = append(known.Networks, n.Name)
	}
	for _, w := range catalogue.Workloads() {
		known.Workloads = append(known.Workloads, study.KnownWorkload{Name: w.Name})
	}
	s, err := study.Parse(f.Path(), f.Data, known)
	if err != nil {
		tb.Fatal(err)
	}
	var claims []result.Claim
	for _, c := range s.Claims {
		claims = append(claims, result.Claim{ID: c.ID, Expect: c.Expect})
	}
	return claims
}

// BenchmarkClaims is what the claims of the study latency cost at the end of a run of 10,000 cells.
func BenchmarkClaims(b *testing.B) {
	w := precise()
	w.networks = []string{"bridge", "bridge-nat", "macvlan", "ipvlan-l2", "ipvlan-l3", "routed", "vxlan", "vxlan-routed"}
	w.rounds, w.roundSD, w.buildSD = 20, 0.02, 0.002
	var settings []setting
	for i := range 500 {
		for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
			settings = append(settings, setting{p, result.Params{Message: unit.Bytes(300 + i)}, nil})
		}
	}
	run, trials := w.in(b, settings...)
	run.Claims = latencyClaims(b)
	b.ReportMetric(float64(len(run.Cells)), "cells")
	b.Run("deltas", func(b *testing.B) {
		for b.Loop() {
			insight.Deltas(run.Cells, trials, insight.Options{})
		}
	})
	b.Run("claims", func(b *testing.B) {
		for b.Loop() {
			insight.Claims(run, trials, nil, insight.Options{})
		}
	})
}
