package testbed

import (
	"context"

	"netdelta/result"
)

// Equipped is a driver that can say what there is where its pods are.
type Equipped interface {
	// Lacking are those of the programs that a pod does not have: names, or paths of files. It may make a pod for the purpose.
	Lacking(ctx context.Context, names []string) ([]string, error)
}

// Remote is a driver whose pods run on machines that this program does not run on: those of a cluster. What this machine's
// kernel counts says nothing of them, its processors can't be given to workloads, and its own load disturbs nothing that is
// measured.
type Remote interface {
	Driver
	// Cluster is what can be told of those machines without looking into a pod. What may not be read is left empty, and said in
	// a sentence of the notes.
	Cluster(ctx context.Context) (about result.Cluster, notes []string, err error)
}
