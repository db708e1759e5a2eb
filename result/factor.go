package result

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Factors are what effects are taken of, in the order in which they are shown: every condition, and the parameters that
// leave the load as it is. Message, connections and rates are not factors: another load is another question.
func Factors() []string {
	return []string{
		"link.rate", "link.delay", "link.loss", "link.nodes", "bond", "offload.tso", "offload.gso", "offload.gro", "offload.lro", "rps", "policy", "service",
		"from", "encryption", "qos", "mtu", "family", "cpu", "busy_poll", "congestion_control", "nagle", "engine",
		"storage_class",
	}
}

// Level is the level of one of Factors. One that is not set is named by what it then is: "none" for a policy.
func (p Params) Level(factor string) string {
	all := p.Conditions.Levels()
	if i := slices.IndexFunc(all, func(l Level) bool { return l.Factor == factor }); i >= 0 {
		return all[i].Value
	}
	if factor == "bond" {
		return "1 link"
	}
	for _, d := range Parameters() {
		switch {
		case d.Factor != factor:
		case p.Given(d) && !strings.HasPrefix(d.Field, "Conditions."):
			return exact(d.Kind, p.Get(d))
		default:
			return cmp.Or(d.Unset, d.Usual, "default")
		}
	}
	return "default"
}

// Without are the parameters with one of Factors left open: two that differ in it alone are then the same.
func (p Params) Without(factor string) Params {
	for _, d := range shared() {
		if d.Factor == factor {
			p = p.With(d, d.Kind.Zero())
		}
	}
	p.Conditions = p.Conditions.Plain()
	return p
}

// shared are the parameters that no workload declares.
var shared = sync.OnceValue(func() []Parameter { return Parameters() })

// Load are the parameters with all of Factors left open: what the workload itself is asked to do.
func (p Params) Load() Params {
	return Params{
		Message: p.Message, Connections: p.Connections, Rate: p.Rate, Search: p.Search, RequestRate: p.RequestRate,
		File: p.File, Reconnect: p.Reconnect, Own: p.Own, Clients: p.Clients, Target: p.Target,
	}
}
