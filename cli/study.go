package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/internal/suggest"
	"netdelta/network"
	"netdelta/result"
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
