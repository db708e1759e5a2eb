package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
)

// dryRun prints what a run would measure and do. It measures nothing.
func (env *environment) dryRun(ctx context.Context, s *session.Session, k kind) error {
	p, err := s.Plan(ctx)
	if err != nil {
		return badInput(err)
	}
	return ui.Print(env.out, "what would be measured", func(out ui.Text) { printPlan(out, s.Study, p, k) })
}

// printPlan prints what is measured, what is not and why, and what is done to the testbed.
func printPlan(out ui.Text, s *study.Study, p experiment.Plan, k kind) {
	measured := plan.Measured(p.Cells)
	out.Put("%s\ntestbed %s: %s\n", strings.TrimSpace(s.Name+"  "+s.Question), k.name, k.about)
	out.Put("baseline %s · at most %s · seed %d · %d cells in each build, in random order\n", s.Baseline, s.Design.TimeBudget, s.Design.Seed, len(measured))
	for _, setting := range result.Settings(measured) {
		out.Put("\n%s\n    %s\n", words.Title(setting), strings.Join(plannedNetworks(measured, setting), ", "))
	}
	printVisits(out, s, p)
	whys := map[string][]string{}
	for _, c := range p.Cells {
		if why := cmp.Or(c.Unsupported, c.Skipped); why != "" && c.Role != result.RoleControl {
			whys[why] = append(whys[why], c.ID)
		}
	}
	for i, why := range slices.Sorted(maps.Keys(whys)) {
		if i == 0 {
			out.Put("\nnot measured\n")
		}
		out.Put("    %s: %s\n", firstOf(whys[why]), why)
	}
	for i, n := range p.Notes {
		if i == 0 {
			out.Put("\n")
		}
		out.Put("note: %s\n", n)
	}
	printSteps(out, s)
}

// printVisits prints which states of the cluster are visited how often, how long that takes, and how precise it can be.
func printVisits(out ui.Text, s *study.Study, p experiment.Plan) {
	visits, whole := plan.Visits(p.Cells, p.Costs, p.Rules)
	if len(visits) == 0 {
		return
	}
	blocks := p.Rules.Builds
	out.Put("\nstates of the cluster: %d blocks in %s or more, as guessed; each visits these states once, in random order\n", blocks, study.FormatDuration(whole))
	for _, v := range visits {
		name := plan.FirstState(v.State)
		if name != v.State {
			name += " again, as A/A control"
		}
		out.Put("    %s: %s; about %s\n", name, strings.Join(v.Networks, ", "), study.FormatDuration(v.Takes))
	}
	if !s.AcrossStates() {
		return
	}
	if blocks < stats.DefaultMinBuilds {
		out.Put("    no interval: it takes %d visits to each state\n", stats.DefaultMinBuilds)
		return
	}
	const scatter = 0.01
	out.Put("    where two visits to one state scatter by 1%%, a delta is known to ±%.1f%% after %d visits; how much they do is not known before the A/A control is measured\n",
		100*scatter*stats.VisitsHalfWidth(blocks, stats.Options{Confidence: s.Design.Confidence}), blocks)
}

// plannedNetworks are the networks that are measured in a setting.
func plannedNetworks(cells []result.Cell, setting result.Setting) (names []string) {
	for _, c := range cells {
		if c.Setting() == setting && c.Role != result.RoleControl && c.Role != result.RoleReference {
			names = append(names, insight.Name(c.Network, c.Path))
		}
	}
	return names
}

// firstOf names the first of some cells, and how many more there are.
func firstOf(ids []string) string {
	if len(ids) == 1 {
		return ids[0]
	}
	return fmt.Sprintf("%s and %d more", ids[0], len(ids)-1)
}

// printSteps prints each command that changes the testbed, and what undoes it.
func printSteps(out ui.Text, s *study.Study) {
	if demands := s.Demands(); len(demands) > 0 {
		out.Put("\nwhat the run would do beyond measuring, once you agree or give --%s\n", trustFlag)
		for _, d := range demands {
			out.Put("    %s\n", d.Says)
		}
	}
	for _, c := range s.Changes {
		if len(c.Restore) == 0 {
			out.Put("    nothing undoes %s: the study gives it no restore\n", testbed.ChangedFor(c.Network))
		}
	}
}
