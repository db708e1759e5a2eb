package markdown

import (
	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// breakdown writes the latency breakdown of storage and databases, in a run that has some.
func (d *document) breakdown(run result.Run) {
	load := func(workload string, p result.Params, at result.Placement) string {
		return escape(words.Load(result.Setting{Workload: workload, Params: p, Placement: at}))
	}
	if len(run.Splits) > 0 {
		d.paragraph("### Where the latency goes")
		d.paragraph(escape(words.SplitParts()))
		for _, s := range run.Splits {
			d.item(load(s.Workload, s.Params, s.Placement) + ", " + escape(insight.Name(s.Network, s.Path)) + ": " + escape(words.Split(s)))
		}
		d.line("")
	}
	if len(run.Replications) > 0 {
		d.paragraph("### Replication")
		for _, r := range run.Replications {
			d.item(load(r.Workload, r.Params, r.Placement) + ", " + escape(insight.Name(r.Network, r.Path)) + ": " + escape(words.Replication(r)))
		}
		d.line("")
	}
	if len(run.Correlations) > 0 {
		d.paragraph("### Applications against raw figures")
		for _, c := range run.Correlations {
			d.item(escape(words.Subject(c)) + " with the " + escape(words.Raw(c)) + ": " + escape(words.Correlation(c)))
		}
		d.line("")
	}
	if services := words.Services(run.Services); services != "" {
		d.paragraph("Services: " + escape(services))
	}
}
