package cli

import (
	"context"
	"slices"
	"strings"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// networkEntry is a network, and where it runs.
type networkEntry struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	UsedBy  []string `json:"used_by"`
	// Overhead is what encapsulation adds to each packet between nodes, in bytes, by the underlay's version of IP.
	Overhead map[result.Family]int64 `json:"overhead_bytes"`
	// Testbeds says of each testbed whether the network runs on it.
	Testbeds []runsOn `json:"testbeds"`
}

// runsOn says whether a network runs on a testbed.
type runsOn struct {
	Testbed string `json:"testbed"`
	Runs    bool   `json:"runs"`
	// Here says that it takes no guest.
	Here bool `json:"here"`
	// Tried is false where nothing was tried, as in a guest that was never built.
	Tried bool `json:"tried"`
	// Needs is what is missing where the network does not run.
	Needs string `json:"needs,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// where says in few words where the network runs, and why not here where it does not: "vm" and "lab needs ipvlan links".
func (e networkEntry) where() (where, why string) {
	if slices.ContainsFunc(e.Testbeds, func(r runsOn) bool { return r.Runs && r.Here }) {
		return "here", ""
	}
	var needs []string
	for _, r := range e.Testbeds {
		if r.Needs != "" {
			needs = append(needs, r.Testbed+" needs "+r.Needs)
		}
	}
	why = strings.Join(needs, "; ")
	for _, r := range e.Testbeds {
		switch {
		case r.Runs:
			return r.Testbed, why
		case !r.Tried:
			return r.Testbed + ", untried", why
		}
	}
	return "nowhere", why
}

func networkEntries(ctx context.Context, env *environment) ([]entry, error) {
	var all []entry
	guest := env.guestNetworks()
	for _, n := range network.Catalogue() {
		e := networkEntry{Name: n.Name, Summary: n.Summary, UsedBy: n.UsedBy, Overhead: map[result.Family]int64{}}
		for _, family := range []result.Family{result.IPv4, result.IPv6} {
			e.Overhead[family] = 0
			if n.Overhead != nil {
				e.Overhead[family] = int64(n.Overhead(family))
			}
		}
		here := asked(labTestbed, env.lab.Supports(ctx, testbed.Spec{Network: n.Name, Family: result.IPv4}))
		e.Testbeds = []runsOn{here, guest(n.Name)}
		where, why := e.where()
		all = append(all, entry{e, []string{e.Name, where, strings.Join(e.UsedBy, ", ")}, []string{e.Summary, why}})
	}
	return all, nil
}

// asked is a driver's answer to whether it supports a network.
func asked(kind string, err error) runsOn {
	r := runsOn{Testbed: kind, Here: true, Tried: true, Runs: err == nil}
	if err != nil {
		r.Needs, r.Fix, _ = missing(err)
	}
	return r
}

// guestNetworks says which networks run in a guest, as far as that was found out before: nothing is built or booted for a list.
// What keeps it from being found out is the doctor's to say.
func (env *environment) guestNetworks() func(name string) runsOn {
	_, all, err := guestHere()
	return func(name string) runsOn {
		r := runsOn{Testbed: vmTestbed}
		if found, known := ofNetwork(all, name); err == nil && known {
			r.Tried, r.Runs = true, found.OK
			if !found.OK {
				r.Needs, r.Fix = strings.TrimPrefix(found.Says, "needs "), found.Fix
			}
		}
		return r
	}
}
