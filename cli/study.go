package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/internal/suggest"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// known lists what studies may refer to.
func (env *environment) known() study.Known {
	k := study.Known{CheckMTU: checkMTU, ReadNetwork: readNetwork, Networks: network.Names(network.Catalogue())}
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

// standIn puts networks in place of the names of products among what flags ask for, and says so. A cluster has its own network, for
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
		note := measuredAs(p.Name, p.Network)
		notes = gather.Once(notes, note)
		return p.Network, nil
	}
	var networks []string
	for _, name := range o.Networks {
		n, err := replace("--networks", name)
		if err != nil {
			return nil, err
		}
		if n == name || !slices.Contains(networks, n) { // two products may have one datapath
			networks = append(networks, n)
		}
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
