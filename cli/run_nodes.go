package cli

import (
	"context"
	"errors"
	"fmt"

	"netdelta/experiment"
	"netdelta/experiment/study"
)

// checkNodes refuses what can't be had with a guest for each node.
func (o runOptions) checkNodes(s *study.Study) error {
	switch {
	case o.nodes == "", isCluster(s.Testbed.Kind):
		return nil
	case o.nodes != vmTestbed:
		return usageError{fmt.Errorf("--nodes %s: it takes vm", o.nodes)}
	case !isGuest(s.Testbed.Kind):
		return usageError{errors.New("--nodes vm goes with --testbed vm")}
	case o.flame || o.hops || o.explain:
		return usageError{errors.New("--nodes vm: --flame, --hops and --explain-outliers look at one kernel, and each guest has its own")}
	case s.Testbed.Nodes > guestNodes:
		return usageError{fmt.Errorf("--nodes vm: the study has %d nodes, and there are %d guests", s.Testbed.Nodes, guestNodes)}
	}
	return nil
}

// runOnGuests carries a run out from here, on nodes that are guests.
func (env *environment) runOnGuests(ctx context.Context, s *study.Study, o runOptions) (err error) {
	g, err := env.bootNodes(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	p, err := experiment.Prepare(ctx, s, g.driver, env.workloads)
	if err != nil {
		return badInput(err)
	}
	if o.overrides.Builds != nil {
		p.FixBuilds(o.builds)
	}
	config, err := experiment.Assemble(ctx, s, p, g.driver, env.workloads)
	if err != nil {
		return err
	}
	config.Program.Path = "/netdelta"
	config.Run.Environment = inGuest(config.Run.Environment, g.image, g.booted[0].Machine.Accel)
	config.Run.Environment.Kernel = g.booted[0].Hello.Kernel
	config.Run.Notes = append(config.Run.Notes, "each node is a guest of its own; what they send one another goes through virtio network cards, one queue each, and through QEMU")
	folder, err := env.openFolder(s, &config.Run, o)
	if err != nil {
		return err
	}
	config.Folder = folder
	run, err := env.carryOut(ctx, config, o)
	return env.finish(run, folder, o, errors.Join(err, folder.Close()))
}
