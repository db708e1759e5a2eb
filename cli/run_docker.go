package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/docker"
)

// dockerFlag names the engine's program.
const (
	dockerFlag  = "docker"
	dockerUsage = "with --testbed docker: the engine's own program, docker, podman or a file (default: docker)"
)

// dockerNetworks are the networks that a study on a container engine may name besides a lab's: the engine is asked for its own later.
func dockerNetworks() study.KnownTestbed {
	read := func(name string) (bool, error) { return strings.HasPrefix(name, docker.Prefix), nil }
	return study.KnownTestbed{Added: true, Names: network.Names(docker.Networks()), Read: read}
}

// checkDocker refuses flags that have no meaning on a container engine.
func checkDocker(o runOptions, _ *study.Study) error {
	switch {
	case o.nodes != "":
		return usageError{fmt.Errorf("--nodes %s: an engine's containers are all on this machine", o.nodes)}
	case slices.Contains(o.overrides.Placement, string(result.CrossNode)):
		return usageError{errors.New("--placement cross-node: an engine's containers are all on this machine; leave it away")}
	case o.flame || o.hops || o.explain:
		return usageError{errors.New("--flame, --hops and --explain-outliers need networks that netdelta has built: run them with --testbed lab on the network that is alike (bridge, macvlan)")}
	}
	return nil
}

// dockerOnly refuses the engine's flag elsewhere.
func dockerOnly(o runOptions, on kind) error {
	if o.docker == "" {
		return nil
	}
	return usageError{fmt.Errorf("--%s goes with --testbed %s; this study runs on testbed %s", dockerFlag, docker.Kind, on.name)}
}

// adaptToDocker has a study run on a container engine: its networks take the place of a lab's, unless these were asked for.
func adaptToDocker(s *study.Study, o study.Overrides, moved bool) (note string) {
	if moved && len(o.Networks) == 0 {
		note = "the study's networks are a lab's: the engine's own take their place"
		s.Networks, s.Changes = network.Names(docker.Networks()), nil
	}
	if moved && o.Baseline == "" {
		s.Baseline = docker.Host
	}
	if !slices.Contains(o.Placement, string(result.CrossNode)) { // which is refused
		s.Placement, s.Testbed.Nodes = []result.Placement{result.SameNode}, 1
	}
	return note
}

// openDocker is the provider of the engine's networks; closing it removes all that was made.
func openDocker(ctx context.Context, env *environment, _ *study.Study, o runOptions) (testbed.Provider, func() error, error) {
	d, err := docker.New(ctx, env.lab, docker.Options{Program: o.docker})
	if err != nil {
		return nil, nil, err
	}
	return d, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return d.Close(ctx)
	}, nil
}

// examineDocker says which of the engine's networks can be measured.
func examineDocker(ctx context.Context, env *environment, o doctorOptions) (err error) {
	d, err := docker.New(ctx, env.lab, docker.Options{Program: o.docker})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close(context.WithoutCancel(ctx))) }()
	var findings []finding
	for _, n := range d.Capabilities().Networks {
		if strings.HasPrefix(n.Name, docker.Prefix) {
			spec := testbed.Spec{Network: n.Name, Family: result.IPv4}
			findings = append(findings, tried("network "+n.Name, n.Summary, d.Supports(ctx, spec)))
		}
	}
	return env.tell(findings, o)
}
