package change

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// goneWithin is how long agents may take to remove what is theirs once a change is undone.
const goneWithin = 3 * time.Second

// namedMost is how many names a sentence has.
const namedMost = 6

// Watch reads what stands on the nodes, once, before anything is changed, and says what of it is another product's.
func (c *Changer) Watch(ctx context.Context) {
	if c.options.Standing == nil || c.stood != nil {
		return
	}
	var err error
	if c.stood, err = c.options.Standing(ctx); err != nil && ctx.Err() == nil {
		c.leave(fmt.Sprintf("whether changes of the cluster leave something behind is not seen on all nodes: %v", err))
	}
	if c.stood == nil {
		c.stood = map[string][]string{}
	}
	if c.options.Foreign != nil && len(c.stood) > 0 {
		c.leave(c.options.Foreign(ctx, c.stood)...)
	}
}

// hold holds what stands on the nodes once a change is undone against what stood there before. What is said once is not said again.
func (c *Changer) hold(ctx context.Context, network string) {
	if len(c.stood) == 0 {
		return
	}
	var now map[string][]string
	for waited := range kube.Polling(ctx, again) {
		now, _ = c.options.Standing(ctx) // nodes that could not be read are left out
		maps.DeleteFunc(now, func(node string, names []string) bool {
			return c.stood[node] == nil || slices.Equal(c.stood[node], names)
		})
		if len(now) == 0 {
			return
		}
		if waited > goneWithin {
			break
		}
	}
	for _, node := range slices.Sorted(maps.Keys(now)) {
		for _, part := range []struct {
			is    string
			names []string
		}{{"now", without(now[node], c.stood[node])}, {"no longer", without(c.stood[node], now[node])}} {
			if len(part.names) > 0 {
				c.leave(fmt.Sprintf("the cluster is not as it was before %s, though that was undone: there is %s on node %s: %s",
					testbed.ChangedFor(network), part.is, node, kube.Some(part.names, "; ", namedMost)))
			}
		}
		c.stood[node] = now[node]
	}
}

// leave keeps sentences for Left, and says them at once.
func (c *Changer) leave(sentences ...string) {
	for _, s := range sentences {
		say(c.options.Log, "  %s\n", s)
	}
	c.left = append(c.left, sentences...)
}

// Left says what changes that were undone have left on the nodes, and what other products have.
func (c *Changer) Left() []string { return slices.Clone(c.left) }

// without are the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
