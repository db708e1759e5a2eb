package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/session"
	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/internal/suggest"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/unit"
)

// known lists what studies may refer to.
func (env *environment) known() study.Known {
	k := study.Known{CheckMTU: checkMTU, ReadNetwork: readNetwork, Networks: network.Names(network.Catalogue())}
	for _, p := range network.Products() {
		if p.Network != study.HostNetwork {
			k.Networks = append(k.Networks, p.Name)
		}
	}
	k.Testbeds, k.On = knownTestbeds()
	for _, w := range env.workloads {
		k.Workloads = append(k.Workloads, study.KnownWorkload{Name: w.Name, Defaults: w.Defaults, Parameters: w.Parameters, Check: w.Check})
	}
	return k
}

// readNetwork reads a network of CNI plugins, whose name gives the file of their list.
func readNetwork(name string) (is bool, err error) {
	if !strings.HasPrefix(name, network.CNIPrefix) {
		return false, nil
	}
	_, err = network.ReadCNI(name)
	return true, err
}

// checkMTU says what a network needs when it can't be built for a version of IP over an underlay of this MTU.
func checkMTU(name string, family result.Family, mtu unit.Bytes) error {
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		return err
	}
	t, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 1, Family: family, MTU: mtu})
	if err != nil {
		return err
	}
	_, err = n.Plan(t)
	return err
}

// readStudy finds a study by its name among the built-in ones, else as a file.
func (env *environment) readStudy(name string) (*study.Study, error) {
	if f, ok := studies.Find(name); ok {
		return study.Parse(f.Path(), f.Data, env.known())
	}
	data, err := result.ReadFile(name, result.StudyMost)
	if errors.Is(err, fs.ErrNotExist) {
		builtin := studies.Names()
		hint := "the built-in studies are " + strings.Join(builtin, ", ")
		if near, ok := suggest.Nearest(name, builtin); ok {
			hint = fmt.Sprintf("did you mean the built-in study %q?", near)
		}
		return nil, usageError{fmt.Errorf("there is no study and no file %q; %s", name, hint)}
	}
	if err != nil {
		return nil, withStatus(exitUsage, fmt.Errorf("reading the study: %w", err))
	}
	return study.Parse(name, data, env.known())
}

// standIn checks the names of products among what flags ask for, and says what stands in for each. A cluster has its own network, for
// which nothing stands in: there such a name is refused, unless the study gives it to a change of the cluster.
func standIn(o *study.Overrides, s *study.Study, k kind) (notes []string, err error) {
	replace := func(flag, name string) (string, error) {
		p, found := network.FindProduct(strings.TrimSpace(name))
		if near := nearProduct(name, k); near != "" && !found && !slices.ContainsFunc(s.Changes, func(c testbed.Change) bool { return c.Network == name }) {
			return "", usageError{fmt.Errorf("%s: unknown network %q; did you mean %s?", flag, name, near)}
		}
		if _, changes := s.Change(name); !found || changes {
			return name, nil
		}
		if k.networks != nil && !k.networks.Added {
			return "", usageError{fmt.Errorf("%s: a cluster is measured with the network that it has, not with %s: name %s; "+
				"--%s measures %s, its stand-in, on the cluster's nodes, and --testbed %s on this machine", flag, p.Name, strings.Join(k.networks.Names, ", "), whatIfFlag, p.Network, labTestbed)}
		}
		notes = gather.Once(notes, measuredAs(p.Name, p.Network))
		if p.Network == study.HostNetwork { // a product's name for it is that of the node's own network
			return p.Network, nil
		}
		return p.Name, nil
	}
	var networks []string
	for _, name := range o.Networks {
		n, err := replace("--networks", name)
		if err != nil {
			return nil, err
		}
		networks = append(networks, n)
	}
	o.Networks = networks
	o.Baseline, err = replace("--baseline", o.Baseline)
	return notes, err
}

// nearProduct says which product was probably meant by a name that is no network's, or which ones where it is a system with several
// networks; "" for none.
func nearProduct(name string, k kind) string {
	known := networkNames()
	if k.networks != nil {
		known = append(known, k.networks.Names...)
	}
	if slices.Contains(known, name) || strings.Contains(name, ":") {
		return ""
	}
	near, _ := suggest.Nearest(name, known)
	if _, found := network.FindProduct(near); found {
		return strconv.Quote(near)
	}
	var systems, modes []string
	for _, p := range network.Products() {
		systems = append(systems, p.System)
	}
	system, found := suggest.Nearest(name, systems)
	if near != "" || !found || k.networks != nil && !k.networks.Added {
		return ""
	}
	for _, p := range network.Products() {
		if p.System == system {
			modes = append(modes, p.Name)
		}
	}
	return "one of " + strings.Join(modes, ", ")
}

// measuredAs says which network stands in for a product.
func measuredAs(name, network string) string {
	return fmt.Sprintf("%s: measured as %s, a stand-in for its datapath", name, network)
}

// checkLooked refuses a network that there is not before a study is made of it, by the flag that it was given by.
func checkLooked(flag, name string) (string, error) {
	if p, found := network.FindProduct(name); found {
		return p.Network, nil
	}
	if near := nearProduct(name, kind{}); near != "" {
		return "", usageError{fmt.Errorf("%s: unknown network %q; did you mean %s?", flag, name, near)}
	}
	if _, err := network.Find(network.Catalogue(), name); err != nil {
		return "", usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	return name, nil
}

// productEntry is the name of a product that stands for a network.
type productEntry struct {
	Name    string `json:"name"`
	System  string `json:"system"`
	Network string `json:"network"`
}

func productEntries(context.Context, *environment) ([]entry, error) {
	var all []entry
	for _, p := range network.Products() {
		all = append(all, entry{productEntry{p.Name, p.System, p.Network}, []string{p.Name, "measured as " + p.Network, p.System}, nil})
	}
	return all, nil
}

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
	out.Put("\nstates of the cluster: %d blocks in %s or more, as guessed; each visits these states once, in random order\n", blocks, unit.FormatDuration(whole))
	for _, v := range visits {
		name := plan.FirstState(v.State)
		if name != v.State {
			name += " again, as A/A control"
		}
		out.Put("    %s: %s; about %s\n", name, strings.Join(v.Networks, ", "), unit.FormatDuration(v.Takes))
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
