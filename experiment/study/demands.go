package study

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/network"
	"netdelta/testbed"
)

// Demand is something that a study asks for beyond measuring: what its author has netdelta do with the rights of its caller.
type Demand struct {
	Says string // for people, in one line
	File string // what a file has to say about it, "" for none
}

// Demands are all that the study asks for beyond measuring: commands and objects that change a cluster, programs that attach pods, and
// endpoints that load is sent to.
func (s *Study) Demands() []Demand {
	var all []Demand
	for _, c := range s.Changes {
		what := testbed.ChangedFor(c.Network)
		for _, steps := range []struct {
			why     string
			actions []testbed.Action
		}{
			{"to be made", c.Apply}, {"until it is in effect", c.Ready}, {"to be undone", c.Restore}, {"so that services settle", c.Settle},
		} {
			for _, a := range steps.actions {
				all = append(all, demandOf(what, a, steps.why))
			}
		}
	}
	for _, n := range s.Networks {
		all = append(all, NetworkDemands(n)...)
	}
	for _, target := range s.targets() {
		all = append(all, Demand{Says: fmt.Sprintf("load is sent to %v", target)})
	}
	return all
}

// HasTarget says whether load is sent to an endpoint that is not netdelta's.
func (s *Study) HasTarget() bool { return len(s.targets()) > 0 }

// targets are the endpoints that load is sent to.
func (s *Study) targets() (all []any) {
	all = slices.Clone(s.Factors["target"])
	for _, w := range s.Workloads {
		all = append(all, w.Levels["target"]...)
	}
	return all
}

// demandOf is what a step of a change asks for, and what it is for.
func demandOf(what string, a testbed.Action, why string) Demand {
	switch {
	case a.Manifest != "":
		return Demand{fmt.Sprintf("%s applies %s to the cluster %s", what, a.Manifest, why), a.Manifest}
	case a.Delete != "":
		return Demand{fmt.Sprintf("%s deletes the objects of %s from the cluster %s", what, a.Delete, why), a.Delete}
	}
	return Demand{Says: fmt.Sprintf("%s runs %s %s", what, strings.Join(a.Command, " "), why)}
}

// NetworkDemands are what a network asks for by its name.
func NetworkDemands(name string) []Demand {
	if file, is := strings.CutPrefix(name, network.CNIPrefix); is {
		return []Demand{{fmt.Sprintf("the CNI plugins of %s are run", file), file}}
	}
	return nil
}
