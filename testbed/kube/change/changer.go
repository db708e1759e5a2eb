package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netdelta/internal/gather"
	"netdelta/internal/owner"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// Options of a Changer.
type Options struct {
	// Run is the run's name, for users who find what it has changed.
	Run string
	// Config is how the cluster was found: commands get its kubeconfig, and a killed run's cluster is found by it again.
	Config kube.Config
	// Folder is the run's folder, and State the folder of all runs whose changes are not undone yet; "" is DefaultState.
	Folder, State string
	// Namespace has the Lease; "" is LeaseNamespace.
	Namespace string
	// Log is told of each step; it may be nil.
	Log io.Writer
	// Standing names what stands on the cluster's nodes, by node, and Foreign says what of that is of other products than the cluster's.
	// Where they are nil, what changes leave behind is not looked for.
	Standing func(ctx context.Context) (map[string][]string, error)
	Foreign  func(ctx context.Context, standing map[string][]string) []string
}

// Changer changes a cluster. It is not safe for concurrent use.
type Changer struct {
	carrier *carrier
	lease   *lease
	options Options
	state   string
	mark    string
	applied *record             // what has to be restored, nil for nothing
	stood   map[string][]string // on the nodes, when nothing was changed; nil before the first change
	left    []string
}

var _ testbed.Changer = (*Changer)(nil)

// New makes a Changer of a cluster. Nothing is asked of the cluster before the first change.
func New(cluster *kube.Cluster, o Options) (*Changer, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.State == "" {
		var err error
		if o.State, err = DefaultState(os.Getenv); err != nil {
			return nil, err
		}
		if err := owner.CheckFolder(o.State, owner.StateVariable); err != nil {
			return nil, fmt.Errorf("find a place to record changes of the cluster: %w", err)
		}
	}
	if o.Config.Kubeconfig != "" {
		path, err := filepath.Abs(o.Config.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("find the kubeconfig: %w", err)
		}
		o.Config.Kubeconfig = path
	}
	if o.Folder != "" {
		path, err := filepath.Abs(o.Folder)
		if err != nil {
			return nil, fmt.Errorf("find the run's folder: %w", err)
		}
		o.Folder = path
	}
	self, err := owner.Self()
	if err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the folder that changes are carried out in: %w", err)
	}
	l := &lease{api: cluster.API, namespace: o.Namespace, run: o.Run, holder: self.String()}
	if l.namespace == "" {
		l.namespace = LeaseNamespace
	}
	return &Changer{
		carrier: &carrier{cluster: cluster, dir: dir, kubeconfig: o.Config.Kubeconfig, log: o.Log},
		lease:   l, options: o, state: o.State, mark: self.String(),
	}, nil
}

// Apply makes the change and returns when it is in effect. The run has the cluster's changes to itself from the first one on.
// What would undo the change is on disk, and in the cluster, before anything is done.
func (c *Changer) Apply(ctx context.Context, change testbed.Change) error {
	if c.applied != nil {
		return fmt.Errorf("change the cluster for %s: it is still changed for %s", testbed.ChangedFor(change.Network), testbed.ChangedFor(c.applied.Network))
	}
	if err := c.sameContext(change); err != nil {
		return err
	}
	steps, err := c.carrier.prepare(change)
	if err != nil {
		return err
	}
	if err := c.lease.take(ctx); err != nil {
		return err
	}
	r := &record{
		Owner: c.mark, Run: c.options.Run, Cluster: c.carrier.cluster.Name, Server: c.carrier.cluster.REST.Host,
		Kubeconfig: c.options.Config.Kubeconfig, Variable: os.Getenv(kubeconfigVariable), Context: c.options.Config.Context,
		Namespace: c.carrier.cluster.Namespace, Lease: c.lease.namespace,
		Network: change.Network, Began: time.Now(), Dir: c.carrier.dir, Folder: c.options.Folder, Within: change.Within, Restore: slices.Concat(steps.restore, steps.settle),
	}
	if err := c.note(ctx, r); err != nil {
		return err
	}
	c.applied = r
	say(c.options.Log, "changing the cluster for %s\n", testbed.ChangedFor(change.Network))
	for _, s := range steps.apply {
		if err := c.carrier.carryOut(ctx, s, change.Within); err != nil {
			return fmt.Errorf("change the cluster for %s: %w", testbed.ChangedFor(change.Network), c.carrier.because(ctx, err))
		}
	}
	if err := c.carrier.await(ctx, steps.ready, change.Within); err != nil {
		return fmt.Errorf("wait until the change for %s is in effect: %w", testbed.ChangedFor(change.Network), c.carrier.because(ctx, err))
	}
	for _, s := range steps.settle {
		if err := c.carrier.carryOut(ctx, s, change.Within); err != nil {
			return fmt.Errorf("settle what runs on the cluster after the change for %s: %w", testbed.ChangedFor(change.Network), err)
		}
	}
	return nil
}

// note records what will have to be undone: in the folder of all runs, in the run's own, and at the Lease.
func (c *Changer) note(ctx context.Context, r *record) error {
	for _, path := range c.records() {
		if err := r.write(path); err != nil {
			return errors.Join(err, c.forget())
		}
	}
	if err := c.lease.say(ctx, r); err != nil {
		return errors.Join(err, c.forget())
	}
	return nil
}

// records are the files of what is changed.
func (c *Changer) records() []string {
	paths := []string{filepath.Join(c.state, c.mark+recordSuffix)}
	if c.options.Folder != "" {
		paths = append(paths, filepath.Join(c.options.Folder, FolderFile))
	}
	return paths
}

func (c *Changer) forget() error {
	errs := gather.Each(c.records(), remove)
	return errors.Join(errs...)
}

// Restore undoes the change that is made, if one is. The error is a *testbed.RestoreError where it could not.
func (c *Changer) Restore(ctx context.Context) error {
	if c.applied == nil {
		return nil
	}
	r := c.applied
	say(c.options.Log, "restoring the cluster after %s\n", testbed.ChangedFor(r.Network))
	if err := c.carrier.undo(ctx, r); err != nil {
		return &testbed.RestoreError{Network: r.Network, Dir: r.Dir, Steps: r.lines(), Err: err}
	}
	c.applied = nil
	c.hold(ctx, r.Network)
	return errors.Join(c.forget(), c.lease.say(ctx, nil))
}

// Close lets others change the cluster, unless it is still changed. It is idempotent.
func (c *Changer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaseRequest)
	defer cancel()
	return c.lease.release(ctx, c.applied == nil)
}
