package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Able are the names of all nodes that take pods of the run, in the order in which testbeds use them.
func (d *Driver) Able(ctx context.Context) ([]string, error) {
	list, err := d.cluster.API.Nodes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes that take pods: %w; or name them with --nodes", withFix(err))
	}
	able, refused := candidates(list.Items, d.launcher.options)
	if len(able) == 0 {
		return nil, fmt.Errorf("none of %d nodes takes pods%s", len(list.Items), reasons(refused))
	}
	return able, nil
}
