package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// job is one run of tcp-rr over some networks.
type job struct {
	networks   []network.Network
	baseline   string
	compare    []string
	placements []result.Placement
	budget     time.Duration
	seed       uint64
	margin     float64 // below which a difference does not matter; 0 is a study's default
}

// measure carries a job out as netdelta run would, in a run folder that is thrown away.
func measure(ctx context.Context, j job) (run result.Run, err error) {
	s := &study.Study{
		Name: "trust", Baseline: j.baseline, Networks: j.compare, Placement: j.placements,
		Testbed:   study.Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: study.Link{MTU: study.DefaultMTU}},
		Workloads: []study.Workload{{Name: "tcp-rr"}},
		Design: study.Design{
			Burst: study.DefaultBurst, Builds: study.DefaultBuilds, Confidence: confidence, Margin: cmp.Or(j.margin, study.DefaultMargin),
			TimeBudget: j.budget, Seed: j.seed,
		},
	}
	driver := lab.NewDriver(j.networks)
	p, err := experiment.Prepare(ctx, s, driver, catalogue.Workloads())
	if err != nil {
		return run, err
	}
	config, err := experiment.Assemble(ctx, s, p, driver, catalogue.Workloads())
	if err != nil {
		return run, err
	}
	if err := machine.Confine(config.Program.CPUs); err != nil {
		return run, err
	}
	dir, err := os.MkdirTemp("", "netdelta-trust-")
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if config.Folder, err = result.Create(filepath.Join(dir, "run"), nil); err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, config.Folder.Close()) }()
	config.Progress, config.Judge = silence{}, words.NewJudge(config.Workloads)
	return experiment.Run(ctx, config)
}

// silence is a Progress that shows nothing.
type silence struct{}

func (silence) Update(experiment.Status) {}

// interval prints a delta's ratio as a change in percent.
func interval(d result.Delta) string {
	percent := func(ratio float64) float64 { return 100 * (ratio - 1) }
	if d.RatioLow == nil {
		return fmt.Sprintf("%+.2f%% (no interval: needs %d builds)", percent(d.Ratio), d.Need)
	}
	return fmt.Sprintf("%+.2f%% [%+.2f, %+.2f]", percent(d.Ratio), percent(*d.RatioLow), percent(*d.RatioHigh))
}
