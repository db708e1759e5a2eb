package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/gather"

	"netdelta/result"
	"netdelta/testbed"
)

const (
	// nodeWithin is how long a run waits for a node that it has measured on and that takes no pods any more.
	nodeWithin = 90 * time.Second
	// nodePause is how often it looks.
	nodePause = time.Second
)

// Choose picks so many nodes, in the order in which they are used: the same ones for all testbeds of a run while they take pods, so that no
// delta is one between nodes.
func (d *Driver) Choose(ctx context.Context, count int) ([]string, error) {
	all, err := d.usable(ctx, count)
	if err != nil {
		return nil, err
	}
	return all[:count], nil
}

// usable are the nodes that Choose chooses from, at least so many. A node that was there and is not is waited for.
func (d *Driver) usable(ctx context.Context, count int) ([]string, error) {
	d.choosing.Lock()
	defer d.choosing.Unlock()
	wait := d.launcher.waits.begin(fmt.Sprintf("%d nodes that take pods", count), nodeWithin)
	defer wait.stop()
	var last error
	for waited := range Polling(ctx, nodePause) {
		nodes, err := d.chooseNow(ctx, count)
		wait.still(err)
		var short *nodesError
		if !errors.As(err, &short) || len(d.chosen) < count || waited > nodeWithin {
			return nodes, err
		}
		last = err // there were enough: one is starting anew, or about to be replaced
	}
	if last != nil {
		return nil, fmt.Errorf("%w: %w", context.Cause(ctx), last)
	}
	return nil, context.Cause(ctx)
}

// chooseNow is usable without waiting for nodes.
func (d *Driver) chooseNow(ctx context.Context, count int) ([]string, error) {
	o := d.launcher.options
	list, err := fetch(ctx, func() (*corev1.NodeList, error) {
		return d.cluster.API.Nodes.List(ctx, metav1.ListOptions{})
	})
	if apierrors.IsForbidden(err) && len(o.Nodes) >= count {
		return o.Nodes, nil // the scheduler will tell what is wrong with them
	}
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("find nodes for the pods: %w; or name them with --nodes", withFix(err))
	}
	if err != nil {
		return nil, fmt.Errorf("find nodes for the pods: %w", err)
	}
	able, refused := candidates(list.Items, o)
	kept := slices.DeleteFunc(slices.Clone(d.chosen), func(name string) bool { return !slices.Contains(able, name) })
	for _, name := range able {
		kept = gather.Once(kept, name)
	}
	if len(kept) < count {
		return nil, &nodesError{count, len(kept), len(list.Items), reasons(refused)}
	}
	d.chosen = kept
	return slices.Clone(kept), nil
}

// nodesError says that there are too few nodes.
type nodesError struct {
	want, take, all int
	reasons         string
}

// Error implements error.
func (e *nodesError) Error() string {
	return fmt.Sprintf("find %d nodes for the pods: %d of %d take pods%s; measure placement same-node alone, or name nodes with --nodes", e.want, e.take, e.all, e.reasons)
}

// unsupported is the error of a feature that needs as many nodes. Fewer is what does not.
func (e *nodesError) unsupported(feature, fewer string) error {
	return &testbed.UnsupportedError{
		Feature: feature, Need: fmt.Sprintf("%d nodes that take pods, of which there are %d%s", e.want, e.take, e.reasons), Fix: "give the cluster more nodes, or measure " + fewer + tolerable([]string{e.reasons}),
	}
}

// reasons are why nodes take no pods, in brackets.
func reasons(refused []string) string {
	if len(refused) == 0 {
		return ""
	}
	return " (" + strings.Join(refused, "; ") + ")"
}

// candidates are the names of the nodes that take pods, in the order in which they are to be used, and why others do not.
func candidates(nodes []corev1.Node, o Options) (able, refused []string) {
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	byName := map[string]corev1.Node{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	wanted := o.Nodes
	if len(wanted) == 0 {
		for _, n := range nodes {
			wanted = append(wanted, n.Name)
		}
	}
	zones := map[string]bool{}
	for _, name := range wanted {
		n, known := byName[name]
		zone := n.Labels[corev1.LabelTopologyZone]
		var why string
		switch {
		case !known:
			why = "there is no such node"
		case len(o.Zones) > 0 && (!slices.Contains(o.Zones, zone) || zones[zone]):
			continue
		default:
			why = o.unfit(n)
		}
		if why != "" {
			refused = append(refused, name+": "+why)
			continue
		}
		zones[zone] = true
		able = append(able, name)
	}
	if len(o.Zones) > 0 {
		slices.SortStableFunc(able, func(a, b string) int {
			return cmp.Compare(slices.Index(o.Zones, byName[a].Labels[corev1.LabelTopologyZone]), slices.Index(o.Zones, byName[b].Labels[corev1.LabelTopologyZone]))
		})
	}
	return able, refused
}

// unfit is why a node takes no pods, "" where it does.
func (o Options) unfit(n corev1.Node) string {
	if n.Spec.Unschedulable {
		return "cordoned"
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "not ready"
		}
	}
	for _, t := range n.Spec.Taints {
		if o.keepsOut(t) {
			return "tainted " + t.Key
		}
	}
	if os := n.Labels[corev1.LabelOSStable]; os != "" && os != "linux" {
		return "runs " + os
	}
	return ""
}

// CheckNodes says which of the nodes that are named by the options are not there or take no pods.
func (d *Driver) CheckNodes(ctx context.Context) error {
	o := d.launcher.options
	if len(o.Nodes) == 0 {
		return nil
	}
	list, err := d.cluster.API.Nodes.List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil // the scheduler will tell what is wrong with them
	}
	if err != nil {
		return fmt.Errorf("look for the nodes of --nodes: %w", err)
	}
	_, refused := candidates(list.Items, o)
	if len(refused) == 0 {
		return nil
	}
	able, _ := candidates(list.Items, Options{PodSpec: o.PodSpec})
	return fmt.Errorf("--nodes: %s; those that take pods are %s%s", strings.Join(refused, "; "), strings.Join(able, ", "), tolerable(refused))
}

// tolerable is what lets pods onto nodes that refuse them by taints.
func tolerable(refused []string) string {
	if slices.ContainsFunc(refused, func(why string) bool { return strings.Contains(why, ": tainted ") }) {
		return "; --tolerate KEY lets pods onto tainted ones"
	}
	return ""
}

// Places is testbed.Capabilities.Places.
func (d *Driver) Places(ctx context.Context, nodes int) error {
	_, err := d.Choose(ctx, nodes)
	if short, is := errors.AsType[*nodesError](err); is {
		feature, fewer := "placement "+string(result.CrossNode), "placement "+string(result.SameNode)+" alone"
		if nodes < 2 {
			feature, fewer = "a run", "another cluster"
		}
		return short.unsupported(feature, fewer)
	}
	return err
}

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
