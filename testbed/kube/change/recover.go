package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"netdelta/internal/owner"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// Restored is a change of a killed run that has been undone.
type Restored struct{ Run, Network, Cluster string }

// String says what was done.
func (r Restored) String() string {
	return fmt.Sprintf("the change of cluster %s for %s, by run %s", r.Cluster, testbed.ChangedFor(r.Network), r.Run)
}

// Recover undoes what runs that were killed have changed of their clusters, as recorded in the state folder ("" is DefaultState).
// Changes of runs that are under way are left alone. Log is told of each step. What can't be undone is a *testbed.RestoreError
// among the joined errors, and stays recorded.
func Recover(ctx context.Context, state string, log io.Writer) ([]Restored, error) {
	if state == "" {
		var err error
		if state, err = DefaultState(os.Getenv); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for what killed runs have changed: %w", err)
	}
	var done []Restored
	var errs []error
	for _, e := range entries {
		mark, is := strings.CutSuffix(e.Name(), recordSuffix)
		if !is {
			continue
		}
		if o, err := owner.Parse(mark); err != nil || !o.Dead() {
			continue
		}
		path := filepath.Join(state, e.Name())
		r, err := read(path)
		if err == nil {
			err = r.recover(ctx, log)
		}
		if err == nil {
			err = errors.Join(remove(path), r.removeCopy())
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		done = append(done, Restored{Run: r.Run, Network: r.Network, Cluster: r.Cluster})
	}
	return done, errors.Join(errs...)
}

// recover undoes the change of a killed run.
func (r *record) recover(ctx context.Context, log io.Writer) error {
	failed := func(err error) error {
		return &testbed.RestoreError{Network: r.Network, Dir: r.Dir, Steps: r.lines(), Err: err}
	}
	cluster, err := r.connect()
	if err != nil {
		return failed(err)
	}
	c := &carrier{cluster: cluster, dir: r.Dir, kubeconfig: r.Kubeconfig, log: log}
	say(log, "restoring cluster %s after %s of run %s\n", r.Cluster, testbed.ChangedFor(r.Network), r.Run)
	if err := c.undo(ctx, r); err != nil {
		return failed(err)
	}
	l := &lease{api: cluster.API, namespace: r.Lease, holder: r.Owner}
	return l.drop(ctx)
}

// connect finds the cluster that was changed, and no other.
func (r *record) connect() (*kube.Cluster, error) {
	if r.Kubeconfig == "" && r.Variable != os.Getenv(kubeconfigVariable) {
		return nil, fmt.Errorf("the cluster was found by %s=%s: set it so", kubeconfigVariable, testbed.Quoted(r.Variable))
	}
	cluster, err := kube.Connect(kube.Config{Kubeconfig: r.Kubeconfig, Context: r.Context, Namespace: r.Namespace})
	if err != nil {
		return nil, err
	}
	if cluster.REST.Host != r.Server {
		return nil, fmt.Errorf("the cluster that was changed is at %s, and the kubeconfig names %s now", r.Server, cluster.REST.Host)
	}
	return cluster, nil
}

// sameContext refuses commands where they would speak to another cluster than netdelta does: they know of the kubeconfig and its
// current context, not of a context that netdelta was told of.
func (c *Changer) sameContext(change testbed.Change) error {
	wanted := c.options.Config.Context
	if wanted == "" {
		return nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.options.Config.Kubeconfig
	raw, err := rules.Load()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if raw.CurrentContext == wanted {
		return nil
	}
	for _, actions := range [][]testbed.Action{change.Apply, change.Ready, change.Restore} {
		for _, a := range actions {
			if len(a.Command) > 0 {
				return fmt.Errorf("%s changes the cluster by commands, which would speak to context %q of the kubeconfig, not to %q; make it the current one: kubectl config use-context %s",
					testbed.ChangedFor(change.Network), raw.CurrentContext, wanted, testbed.Quoted(wanted))
			}
		}
	}
	return nil
}
