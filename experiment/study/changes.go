package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/unit"
)

// Of a network that changes the cluster, what holds where its study does not say otherwise.
const (
	DefaultUses   = "pod"
	DefaultWithin = 2 * time.Minute
)

// Bounds of how long a change may take to be in effect.
const (
	minWithin = time.Second
	maxWithin = time.Hour
)

// Words for what becomes of the pods under a change.
const (
	podsAfresh = "afresh"
	podsKept   = "kept"
)

// networks reads a list in which each entry is the name of a network, or a network that changes the cluster.
func (r *reader) networks(path string, n *yaml.Node) {
	to := &r.study.Networks
	r.each(path, n, func() int { return len(*to) }, func(path string, n *yaml.Node) {
		if n = follow(n); n.Kind != yaml.MappingNode {
			if name, ok := r.word(path, n); ok {
				*to = append(*to, name)
			}
			return
		}
		c := testbed.Change{Uses: DefaultUses, Within: DefaultWithin}
		r.mapping(path, "a network that changes the cluster", n, readersOf(changeFields(r, &c)))
		if c.Network == "" {
			if !r.bad[path] {
				r.fail(path, r.place(n), "a network that changes the cluster has no name", "give it one that is used for it in the results: name: flannel-vxlan")
			}
			return
		}
		*to = append(*to, c.Network)
		r.study.Changes = append(r.study.Changes, c)
	})
}

// changeFields are the keys of a network that changes the cluster.
func changeFields(r *reader, c *testbed.Change) []field {
	return append([]field{
		text(r, "name", &c.Network),
		text(r, "uses", &c.Uses),
		field{"expect", into(r, &c.Expect, parseEncapsulation), textNode(string(c.Expect)), c.Expect == ""}.optional(),
	}, stepFields(r, c)...)
}

// stepFields are the keys of what is done to the cluster.
func stepFields(r *reader, c *testbed.Change) []field {
	actions := func(key string, to *[]testbed.Action) field {
		return field{key, r.actions(to), list(*to, actionNode), len(*to) == 0}
	}
	return []field{
		actions("apply", &c.Apply),
		actions("ready", &c.Ready).optional(),
		actions("restore", &c.Restore),
		actions("settle", &c.Settle).optional(),
		figure(r, "within", &c.Within, parseDuration),
		{key: "pods", read: into(r, &c.Kept, parseKept), value: textNode(map[bool]string{false: podsAfresh, true: podsKept}[c.Kept])},
	}
}

func parseEncapsulation(s string) (testbed.Encapsulation, error) {
	if e := testbed.Encapsulation(s); slices.Contains(testbed.Encapsulations(), e) {
		return e, nil
	}
	known := gather.Each(testbed.Encapsulations(), func(e testbed.Encapsulation) string { return string(e) })
	return "", fmt.Errorf("unknown encapsulation %s: %s", printed(s), suggest(s, known))
}

func parseKept(s string) (bool, error) {
	switch s {
	case podsKept:
		return true, nil
	case podsAfresh:
		return false, nil
	}
	return false, fmt.Errorf("%s is neither %s nor %s", printed(s), podsAfresh, podsKept)
}

// actions returns a reader of a list in which each entry is a command line, a command as a list of words, or a manifest.
func (r *reader) actions(to *[]testbed.Action) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		r.each(path, n, func() int { return len(*to) }, func(path string, n *yaml.Node) {
			n = follow(n)
			var a testbed.Action
			switch n.Kind {
			case yaml.SequenceNode:
				if len(n.Content) == 0 {
					r.fail(path, r.place(n), "the command has no words", "name a program and its arguments")
					return
				}
				for i, v := range n.Content {
					word, ok := r.word(fmt.Sprintf("%s[%d]", path, i), v)
					if !ok {
						return
					}
					a.Command = append(a.Command, word)
				}
			case yaml.MappingNode:
				r.mapping(path, "a manifest", n, readersOf(actionFields(r, &a)))
				if r.bad[path] {
					return
				}
				if (a.Manifest == "") == (a.Delete == "") {
					r.fail(path, r.place(n), "one file is wanted", "write {manifest: FILE} to apply its objects, or {delete: FILE} to delete them")
					return
				}
			default:
				line, ok := r.word(path, n)
				if !ok {
					return
				}
				words, err := splitCommand(line)
				if err != nil {
					r.fail(path, r.place(n), fmt.Sprintf("command %s: %v", printed(line), err), "")
					return
				}
				a.Command = words
			}
			*to = append(*to, a)
		})
	}
}

func actionFields(r *reader, a *testbed.Action) []field {
	return []field{text(r, "manifest", &a.Manifest).optional(), text(r, "delete", &a.Delete).optional()}
}

// shellSigns are what a shell would take for more than a letter. No shell reads the commands.
const shellSigns = "|&;<>$`()*?\\"

// splitCommand parts a command line at its blanks. Words with blanks are put in quotes. What only a shell understands is
// refused: it would be taken by its letters.
func splitCommand(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, c := range line {
		blank := c == ' ' || c == '\t' || c == '\n'
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && blank:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		case quote == 0 && strings.ContainsRune(shellSigns, c), quote == '"' && strings.ContainsRune("$`\\", c):
			return nil, fmt.Errorf("no shell reads it, and %q would be taken by its letter; put it in single quotes, or write [sh, -c, %s]", c, `"..."`)
		default:
			word.WriteRune(c)
			begun = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c has no end", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fmt.Errorf("it has no program")
	}
	return words, nil
}

// Change is the study's change of the network of this name.
func (s *Study) Change(network string) (testbed.Change, bool) {
	return gather.First(s.Changes, func(c testbed.Change) bool { return c.Network == network })
}

// changing are the names of the networks that change the cluster, less those that are none.
func (s *Study) changing() []string {
	var names []string
	for _, c := range s.Changes {
		if changeName(c.Network) {
			names = append(names, c.Network)
		}
	}
	return names
}

func changeName(s string) bool { return begun(s, ".-", 63) }

// changed checks a network that changes the cluster.
func (c *checker) changed(path string, n testbed.Change) {
	known, err := c.known.reads(n.Network)
	switch {
	case n.Network == HostNetwork:
		c.fail(path+".name", "network host is the nodes' own, whatever is changed", "give the changed one a name of its own")
	case !changeName(n.Network):
		c.fail(path+".name", "network name "+printed(n.Network)+" is not a name", "use up to 63 lower-case letters, digits, dots and dashes")
	case known || err != nil:
		c.fail(path+".name", fmt.Sprintf("there is a network %s already", n.Network), "give the changed one a name of its own")
	}
	if !c.bad(path+".uses") && c.kinds[c.study.Testbed.Kind].Changes {
		if _, is := c.study.Change(n.Uses); is {
			c.fail(path+".uses", fmt.Sprintf("%s is itself a network that changes the cluster", printed(n.Uses)), "name one that the cluster has: "+DefaultUses)
		} else {
			c.unknown(path+".uses", n.Uses)
		}
	}
	c.steps(path, "network", n)
}

// steps checks what is done to the cluster for a network or a level.
func (c *checker) steps(path, what string, n testbed.Change) {
	if !c.kinds[c.study.Testbed.Kind].Changes {
		if c.bad("testbed") {
			return
		}
		able := c.testbedsThat(func(k KnownTestbed) bool { return k.Changes })
		c.fail(path, fmt.Sprintf("%s %s changes a cluster, and the testbed is %s", what, printed(n.Network), printed(c.study.Testbed.Kind)), "write testbed: {kind: "+strings.Join(able, "} or {kind: ")+"}")
	}
	inRange(c, path+".within", n.Within, minWithin, maxWithin, unit.FormatDuration)
	for _, part := range []struct {
		key     string
		actions []testbed.Action
		fix     string
	}{
		{"apply", n.Apply, "name what makes the change: apply: [scripts/switch.sh vxlan], or [{manifest: FILE}]"},
		{"ready", n.Ready, ""},
		{"restore", n.Restore, "name what undoes the change: it is carried out at the end of the run, however it ends"},
		{"settle", n.Settle, ""},
	} {
		at := path + "." + part.key
		if len(part.actions) == 0 && part.fix != "" && !c.bad(path) && !c.given(at) {
			c.fail(path, fmt.Sprintf("%s %s has no %q", what, printed(n.Network), part.key), part.fix)
		}
		for i, a := range part.actions {
			c.action(fmt.Sprintf("%s[%d]", at, i), a)
		}
	}
}

// action checks what would do harm when it is printed.
func (c *checker) action(path string, a testbed.Action) {
	for _, text := range append(slices.Clone(a.Command), a.Manifest, a.Delete) {
		switch what := hostile(text); {
		case what != "":
			c.fail(path, "it has "+what, "remove it")
		case strings.ContainsRune(text, '\n'):
			c.fail(path, "it has a line break", "write one line")
		case len(text) > maxText:
			c.fail(path, fmt.Sprintf("it has %d bytes", len(text)), fmt.Sprintf("at most %d", maxText))
		default:
			continue
		}
		return
	}
	if len(a.Command) > 0 && a.Command[0] == "" {
		c.fail(path, "the command has no program", "name a program and its arguments")
	}
}

// networkNode writes a network as its study has it.
func (s *Study) networkNode(network string) *yaml.Node {
	c, is := s.Change(network)
	if !is {
		return textNode(network)
	}
	return mapping(0, changeFields(nil, &c)...)
}

// actionNode writes a command as a list of its words, which needs no quotes within quotes.
func actionNode(a testbed.Action) *yaml.Node {
	if len(a.Command) > 0 {
		return list(a.Command, textNode)
	}
	return mapping(yaml.FlowStyle, actionFields(nil, &a)...)
}

// networksNode writes networks on one line, or, where some change the cluster, on a line of its own each.
func (s *Study) networksNode() *yaml.Node {
	if len(s.changing()) == 0 {
		return list(s.Networks, textNode)
	}
	return block(s.Networks, s.networkNode)
}

// vocabulary are the names that claims can be about: what is known, and the study's own networks.
func (c *checker) vocabulary() *vocabulary {
	v := c.known.vocabulary()
	v.networks = append(v.networks, c.study.changing()...)
	return v
}

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
