package cli

import (
	"slices"
	"strings"

	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/workload"
)

// variant is a workload with the parameters that decide which programs it needs.
type variant struct {
	name     string // "block, store=ceph"
	programs []workload.Program
}

// variants are a workload's ways to need programs: by its own parameters, with each store and with each engine that it has.
func variants(w workload.Workload) []variant {
	all := ownVariants(w)
	for _, engine := range []string{"wrk", "iperf3", "sockperf", "netperf"} {
		p := w.Defaults
		p.Engine = engine
		all = addVariant(all, w, w.Name+", engine="+engine, p)
	}
	return all
}

// ownVariants are those in which the workload's own engine makes the load.
func ownVariants(w workload.Workload) []variant {
	all := addVariant(nil, w, w.Name, w.Defaults)
	for _, store := range []string{"nbd", "ceph"} {
		p := w.Defaults
		p.Own = result.OwnOf("store", store)
		all = addVariant(all, w, w.Name+", store="+store, p)
	}
	return all
}

// addVariant adds a variant that the workload has and that needs other programs than those before it.
func addVariant(all []variant, w workload.Workload, name string, p result.Params) []variant {
	needs := w.Demands(p).Programs
	known := slices.ContainsFunc(all, func(v variant) bool { return slices.Equal(v.programs, needs) })
	if len(needs) == 0 || known || w.Check != nil && w.Check(p) != nil {
		return all
	}
	return append(all, variant{name, needs})
}

// examinePrograms looks for the programs of others that workloads run, without which those are unsupported.
func (env *environment) examinePrograms() ([]finding, error) {
	var findings []finding
	for _, w := range env.workloads {
		for _, v := range variants(w) {
			f := finding{Topic: "workload " + v.name, OK: true, Says: "runs " + strings.Join(v.names(), ", ")}
			programs, packages, err := workload.Missing(v.programs)
			if err != nil {
				return nil, err
			}
			if len(programs) > 0 {
				f.OK, f.Says = false, strings.Join(programs, ", ")+" not found: cells of this workload are unsupported"
				f.Fix = "make setup, or install " + strings.Join(packages, " ")
			}
			findings = append(findings, f)
		}
	}
	return findings, nil
}

// names are the names of the variant's programs.
func (v variant) names() []string {
	return gather.Each(v.programs, func(p workload.Program) string { return p.Name })
}

// needed are the programs of one workload of a study, at all its levels; the same may be there several times.
func (env *environment) needed(s *study.Study, of study.Workload) []workload.Program {
	var needs []workload.Program
	for _, w := range env.workloads {
		if w.Name != of.Name {
			continue
		}
		for _, p := range s.Combinations(of) {
			needs = append(needs, w.Demands(p).Programs...)
		}
	}
	return needs
}

// absent says which programs of a workload are not here, variant by variant; "" if none is missing. Engines are there for
// comparison: the doctor tells of them.
func absent(w workload.Workload) (string, error) {
	var said []string
	for _, v := range ownVariants(w) {
		programs, _, err := workload.Missing(v.programs)
		if err != nil {
			return "", err
		}
		if len(programs) > 0 {
			said = append(said, v.name+" needs "+strings.Join(programs, ", "))
		}
	}
	return strings.Join(said, "; "), nil
}
