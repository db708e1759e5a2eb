package terminal

import (
	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// breakdown shows the latency breakdown of storage and databases: where latency goes, what clusters say of their
// replication, and how applications go with raw figures.
func (p *page) breakdown() {
	if len(p.run.Splits) > 0 {
		p.title("Where the latency goes", "median; disk without a network")
		heading := ""
		for _, s := range p.run.Splits {
			p.under(&heading, result.Setting{Workload: s.Workload, Params: s.Params, Placement: s.Placement})
			p.paragraph(piece{insight.Name(s.Network, s.Path) + gap, ui.Plain}, words.Split(s))
		}
		p.paragraph(piece{}, words.SplitParts())
	}
	if len(p.run.Replications) > 0 {
		p.title("Replication", "as the cluster measured it")
		heading := ""
		for _, r := range p.run.Replications {
			p.under(&heading, result.Setting{Workload: r.Workload, Params: r.Params, Placement: r.Placement})
			p.paragraph(piece{insight.Name(r.Network, r.Path) + gap, ui.Plain}, words.Replication(r))
		}
	}
	if len(p.run.Correlations) > 0 {
		p.title("Applications against raw figures", "correlation over networks")
		for _, c := range p.run.Correlations {
			p.paragraph(piece{}, words.Subject(c)+" with the "+words.Raw(c)+": "+words.Correlation(c))
		}
	}
}

// under prints the name of a setting where it is another one than the last.
func (p *page) under(last *string, s result.Setting) {
	if load := words.Load(s); load != *last {
		p.paragraph(piece{}, load)
		*last = load
	}
}
