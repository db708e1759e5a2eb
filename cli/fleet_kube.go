package cli

import (
	"context"
	"errors"
	"fmt"

	"netdelta/experiment/fleet"
	"netdelta/testbed/kube"
)

// openCluster is the driver of the cluster that the flags name, and what removes all that it has made there. Nodes are those that
// pods are put on; none leaves it to the cluster.
func (o clusterOptions) openCluster(ctx context.Context, nodes []string) (*kube.Driver, func(context.Context) error, error) {
	cluster, err := o.connect()
	if err != nil {
		return nil, nil, err
	}
	driver, err := kube.NewDriver(cluster, kube.Options{
		Image: o.Image, BaseImage: o.BaseImage, Zones: o.Zones, QoS: o.QoS, Nodes: nodes,
	})
	if err != nil {
		return nil, nil, usageError{err}
	}
	if _, err := cluster.Meet(ctx); err != nil {
		return nil, nil, err
	}
	return driver, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return driver.Close(ctx)
	}, nil
}

// fleetOnCluster has fleets fire whose pods Jobs of a cluster have made.
func (env *environment) fleetOnCluster(ctx context.Context, o *fleetOptions) error {
	config, err := env.fleetConfig(o)
	if err != nil {
		return err
	}
	driver, remove, err := o.cluster.openCluster(ctx, o.nodes)
	if err != nil {
		return err
	}
	if len(config.Networks) == 0 {
		config.Networks = []string{kube.Host, kube.Pod, kube.ClusterIP}
	}
	o.networks = config.Networks
	if err := env.supported(ctx, driver, config.Networks, config.Params); err != nil {
		return errors.Join(err, remove(ctx))
	}
	config.Open = func(ctx context.Context, name string, clients, servers int) (fleet.Ground, error) {
		f, err := driver.OpenFleet(ctx, kube.FleetSpec{Network: name, Family: config.Params.Family, Clients: clients, Servers: servers})
		if err != nil {
			return nil, err // a nil *kube.Fleet would be a ground
		}
		return f, nil
	}
	// What was measured is printed before anything that is left in the cluster is waited for.
	return errors.Join(env.fireFleet(ctx, config, o), remove(ctx))
}

// checkCluster refuses flags of a cluster with another testbed.
func (o clusterOptions) checkTestbed(kind string, nodes []string) error {
	flag := o.given()
	if flag == "" && len(nodes) > 0 {
		flag = "--nodes"
	}
	if kind != kubeTestbed && flag != "" {
		return usageError{fmt.Errorf("%s goes with --testbed %s", flag, kubeTestbed)}
	}
	return nil
}
