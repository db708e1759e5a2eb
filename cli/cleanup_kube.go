package cli

import (
	"context"
	"fmt"

	"netdelta/report/ui"
	"netdelta/testbed/kube"
)

// cleanCluster removes what killed runs left in a cluster, and says how much it was.
func (env *environment) cleanCluster(ctx context.Context, flags clusterFlags) (int, error) {
	cluster, err := flags.connect()
	if err != nil {
		return 0, err
	}
	if _, err := cluster.Meet(ctx); err != nil {
		return 0, err
	}
	removed, err := kube.Sweep(ctx, cluster)
	for _, what := range removed {
		fmt.Fprintf(env.out, "removed %s\n", ui.Clean(what))
	}
	return len(removed), err
}
