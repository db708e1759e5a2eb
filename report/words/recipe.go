package words

import (
	"cmp"
	_ "embed" // recipes.yaml
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
)

//go:embed recipes.yaml
var recipesText []byte

// recipes are the ones that recipes.yaml has.
type recipes struct {
	Changes []struct {
		Factor, From, To string
		How, Undo        []string
		Risk             string
	}
	Configurations map[string][]string
	Leftovers      map[string][]string
	Plain          map[string]string // by system
}

var book = sync.OnceValue(func() (b recipes) {
	if err := yaml.Load(recipesText, &b, yaml.WithKnownFields()); err != nil {
		panic("recipes.yaml: " + err.Error()) // a mistake that every test of advice would find
	}
	return b
})

// recipe is how a change is made and undone, and what it risks.
type recipe struct {
	how, undo []string
	risk      string
}

// recipeOf is the recipe of a change.
func recipeOf(c insight.Change, run result.Run) recipe {
	switch {
	case c.Applied != nil:
		return recipe{c.Applied.Apply, c.Applied.Undo, "The study made this change and undid it: it is for all pods of the cluster."}
	case c.Factor == "" && len(c.Moves) > 0:
		return joined(c.Moves)
	}
	for _, r := range book().Changes {
		if (r.Factor == "") == (c.Factor == "") && fits(r.Factor, c.Factor) && fits(r.From, c.From) && fits(r.To, c.To) {
			return recipe{filledIn(r.How, levelsOf(c)...), filledIn(r.Undo, levelsOf(c)...), r.Risk}
		}
	}
	if c.Factor != "" {
		return recipe{}
	}
	return recipe{how: installed(c.To, run), risk: "Networks differ in features: check first what the other one has of policies, encryption and services."}
}

// fits tells whether a name is as a pattern has it, "" for any.
func fits(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return pattern == "" || is && err == nil
}

// levelsOf are the words of commands that stand for a change's levels, each with what is put in its place.
func levelsOf(c insight.Change) []string {
	all := []string{"{offload}", strings.TrimPrefix(c.Factor, "offload.")}
	for name, level := range map[string]string{"to": c.To, "from": c.From} {
		_, bond, _ := strings.Cut(level, "x")
		all = append(all, "{"+name+"}", level,
			"{"+name+".bond}", strings.Replace(bond, ",", " xmit_hash_policy ", 1),
			"{"+name+".us}", strings.TrimSuffix(strings.TrimSuffix(level, "us"), "µs"), // as sysctls take it
			"{"+name+".bit}", map[string]string{"on": "1", "off": "0"}[level],
			"{"+name+".mask}", map[string]string{"on": "ffffffff", "off": "0"}[level])
	}
	return all
}

// filledIn are commands with words in the places of others.
func filledIn(commands []string, words ...string) []string {
	return gather.Each(commands, strings.NewReplacer(words...).Replace)
}

// findingRecipe is how what the doctor found in a run's testbed is fixed: in the doctor's words and, where the cluster's product is known, by
// the product's commands.
func findingRecipe(f result.Finding, run result.Run) recipe {
	r, advised := recipe{how: []string{f.Fix}}, []string{"# " + f.Fix}
	plugin, _, _ := strings.Cut(f.Fix, ":")
	if f.Topic == "host routing" && plugin == "cilium" {
		all := book().Configurations
		return recipe{append(advised, all["cilium host routing"]...), all["cilium legacy routing"], services}
	}
	if f.Topic != insight.TopicEncapsulation || run.Environment.Cluster == nil {
		return r
	}
	for _, m := range network.Moves() {
		if m.From.Name == run.Environment.Cluster.Product && (m.To.Network == "routed" || m.To.Network == "ebpf-routed") {
			move := moveRecipe(m)
			return recipe{append(advised, move.how...), move.undo, move.risk}
		}
	}
	return r
}

// installed says how a network is had, by the systems that use it.
func installed(name string, run result.Run) []string {
	if users := Users(run)[name]; len(users) > 0 {
		return []string{"# " + name + " is used by " + strings.Join(users, ", ")}
	}
	return nil
}

// StandIn is the network of the catalogue that a run measured in place of a product; "" of all else, such as the product itself.
func StandIn(run result.Run, name string) string {
	mechanism := network.Mechanism(name)
	if mechanism == name || run.Testbed == result.Imported || slices.ContainsFunc(run.Changes, func(c result.Changed) bool { return c.For == name }) {
		return ""
	}
	return mechanism
}

// Heading stands above an entry of insight.Part.Shown, "" where nothing does: above the first demonstration after other networks.
func Heading(shown []result.Delta, i int) string {
	if i > 0 && network.IsDemonstration(shown[i].Network) && !network.IsDemonstration(shown[i-1].Network) {
		return "demonstrations of a mechanism"
	}
	return ""
}

// Users names the systems whose pods are attached as in each network of a run.
func Users(run result.Run) map[string][]string {
	found := slices.ContainsFunc(run.Cells, func(c result.Cell) bool { return c.Network == network.Metal })
	return network.Users(found || len(run.Environment.Servers) > 0)
}

// joined are the recipes of moves, each headed by its system where there are several.
func joined(moves []network.Move) recipe {
	var all recipe
	for _, m := range moves {
		r := moveRecipe(m)
		if len(moves) > 1 {
			all.how, all.undo = append(all.how, "# "+m.From.System), append(all.undo, "# "+m.From.System)
		}
		all.how, all.undo = append(all.how, r.how...), append(all.undo, r.undo...)
		all.risk = cmp.Or(all.risk, r.risk)
	}
	return all
}

// What several changes risk.
const (
	oneLink    = "All nodes must be on one link, or the routers between them must know the pods' addresses; connections break once."
	plain      = "Packets between nodes are readable on the wire."
	reconnects = "Packets are dropped while the agents restart, node by node."
	services   = "Connections through services break once. Before kube-proxy is removed, k8sServiceHost and k8sServicePort must name the API server."
)

// moveRecipe is how users of a system change from one of its configurations to another.
func moveRecipe(m network.Move) recipe {
	undo := append(configured(m.From, m.To), book().Leftovers[m.To.Name]...)
	r := recipe{how: configured(m.To, m.From), undo: undo, risk: reconnects}
	switch {
	case m.From.Network == "wireguard" && m.To.Network != "wireguard" || m.From.Network == "ipsec" && m.To.Network != "wireguard":
		r.risk = plain + " " + oneLink
	case m.To.Network == "routed":
		r.risk = oneLink
	case m.To.Network == "ebpf-routed":
		r.risk, r.undo = oneLink+" "+services, append(r.undo, "# and kubeProxyReplacement and bpf.masquerade as they were")
	case m.To.Network == "netkit":
		r.risk = "It takes Linux 6.8 on every node; pods must be made anew."
	case m.To.Name == "docker-macvlan" || m.To.Name == "docker-ipvlan":
		r.risk = "Containers are on the host's own link, with addresses of it; they and their host can't reach each other; clouds often refuse further MAC addresses."
	case m.To.Network == "host":
		r.risk = "Ports collide on the host, and nothing isolates the container's network."
	}
	return r
}

// configured says how a system is put from one configuration into another.
func configured(p, from network.Product) []string {
	plain := ""
	if from.Network == "wireguard" || from.Network == "ipsec" {
		plain = book().Plain[p.System]
	}
	commands := filledIn(book().Configurations[p.Name], "{plain}", plain)
	return slices.DeleteFunc(commands, func(command string) bool { return command == "" })
}
