package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/internal/gather"
	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// denials are the policies that keep a client's pod from a server's; none where this user may not see them, and of pods in their node's
// namespace, which policies do not select.
func (t *Testbed) denials(ctx context.Context, client, server *pod) []Denial {
	if client.host || server.host || isSecondary(t.spec.Network) {
		return nil
	}
	found, err := t.driver.launcher.denials(ctx, client.wish(), server.wish())
	if err != nil {
		return nil // what keeps packets from passing is then not known
	}
	return found
}

// judgeWay says what is wrong with a way between two pods by what came of trying it, nil where nothing is that TCP does not get by.
func judgeWay(o inside.Outcome, from, to, network string, denials []Denial) error {
	e := &testbed.BrokenError{Network: network}
	switch {
	case o.Error != "" && len(denials) > 0:
		e.Says = "NetworkPolicies keep netdelta's pods from each other: " + strings.Join(gather.Each(denials, Denial.String), "; ")
		e.Tried, e.Fix = o.Error, CommandToAdmit(denials)
	case o.Error != "" && from == to:
		e.Says = "nothing gets from one pod to another of node " + from
		e.Tried, e.Fix = o.Error, closedFix(network, true)
	case o.Error != "":
		e.Says = fmt.Sprintf("nothing gets from a pod of node %s to one of node %s and back", from, to)
		e.Tried, e.Fix = o.Error, closedFix(network, false)
	case o.Stuck:
		e.Says = strings.Join(vanishing(o, from, to), ", and ")
		e.Fix = fmt.Sprintf("let all that lies between the nodes carry packets of %d bytes with what the cluster's network wraps around them, or give the network an MTU of %d",
			max(o.Out.MTU, o.Back.MTU), passing(o))
	default:
		return nil
	}
	return e
}

// closedFix is what to look at where nothing passes.
func closedFix(network string, oneNode bool) string {
	switch {
	case serviced(network):
		return "see whether network pod works: then look at what leads to services, kube-proxy or what takes its place, on the client's node; else at the pods' own network"
	case oneNode:
		return "look at the network plugin's own pod on that node, and for firewall rules and the plugin's own policies"
	}
	return "look at the network plugin's own pods on both nodes, for a firewall between the nodes that drops what the plugin wraps packets in (VXLAN: UDP port 8472 or 4789; " +
		"Geneve: UDP 6081; WireGuard: UDP 51820 or 51871; IPIP: protocol 4), and for the plugin's own policies"
}

// vanishing says which packets get lost on a way that its ends take to carry them, in each direction.
func vanishing(o inside.Outcome, from, to string) []string {
	var all []string
	for _, w := range []struct {
		inside.Passing
		from, to string
	}{{o.Out, from, to}, {o.Back, to, from}} {
		switch {
		case !w.Vanish():
		case w.Largest == 0:
			all = append(all, fmt.Sprintf("packets of a few hundred bytes vanish from %s to %s", w.from, w.to))
		default:
			all = append(all, testbed.Vanishing(w.Largest, w.MTU, " from "+w.from+" to "+w.to))
		}
	}
	return all
}

// passing is the size of packets that pass both ways.
func passing(o inside.Outcome) int {
	switch {
	case !o.Out.Vanish():
		return o.Back.Largest
	case !o.Back.Vanish():
		return o.Out.Largest
	}
	return min(o.Out.Largest, o.Back.Largest)
}

// Ways are what came of trying the ways between pods on nodes.
type Ways struct {
	// Tried is how many pairs of nodes were.
	Tried int
	// MTU is that of the pods there, in bytes, by the names of nodes.
	MTU map[string]int
	// Broken are the ways that do not carry what they have to, at most a few.
	Broken []*testbed.BrokenError
}

const (
	// waysAtOnce is how many ways are tried at a time, and wayWithin how long one may take until it is open.
	waysAtOnce = 8
	wayWithin  = 10 * time.Second
	// brokenMost is after how many broken ways no more are tried.
	brokenMost = 8
)

// TryWays makes a pod on each of the nodes, tries the ways between every two of them over the pods' own network, there and back, and takes the
// pods away again.
func (d *Driver) TryWays(ctx context.Context, nodes []string) (ways Ways, err error) {
	if len(nodes) < 2 {
		return ways, nil
	}
	if err := d.lease.hold(ctx); err != nil {
		return ways, err
	}
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	pods := make([]*LivePod, len(nodes))
	answerers := make([]*stream, len(nodes))
	defer func() {
		var group errgroup.Group
		for i := range nodes {
			group.Go(func() error {
				if answerers[i] != nil {
					answerers[i].cut()
				}
				if pods[i] == nil {
					return nil
				}
				return pods[i].Delete()
			})
		}
		err = errors.Join(err, group.Wait())
	}()
	port := uint16(firstPort + d.launcher.options.Ports)
	group, starting := errgroup.WithContext(ctx)
	group.SetLimit(waysAtOnce)
	for i, node := range nodes {
		group.Go(func() (err error) {
			if pods[i], err = d.launcher.Launch(starting, Wish{Name: fmt.Sprintf("way%d", i), Role: RoleServer, Node: node}); err != nil {
				return fmt.Errorf("node %s: %w", node, err)
			}
			answerers[i], err = listen(ctx, d.cluster, pods[i].place, port)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return ways, err
	}
	denials, err := d.launcher.Denials(ctx)
	if err != nil {
		denials = nil // what keeps packets from passing is then not known
	}
	ways.MTU = map[string]int{}
	var mu sync.Mutex
	group, trying := errgroup.WithContext(ctx)
	group.SetLimit(waysAtOnce)
	for i, from := range pods {
		for _, to := range pods[i+1:] {
			group.Go(func() error {
				mu.Lock()
				enough := len(ways.Broken) >= brokenMost
				mu.Unlock()
				if enough {
					return nil
				}
				trial := inside.Trial{At: []netip.AddrPort{netip.AddrPortFrom(to.Address(), port)}, Within: wayWithin, Whole: true}
				out, err := ask[inside.Outcome](trying, d.cluster, from.place, inside.Try, trial)
				if err != nil {
					return fmt.Errorf("try the way from a pod of node %s to one of node %s: %w", from.Node(), to.Node(), err)
				}
				mu.Lock()
				defer mu.Unlock()
				ways.Tried++
				ways.MTU[from.Node()] = max(ways.MTU[from.Node()], out.Out.MTU)
				ways.MTU[to.Node()] = max(ways.MTU[to.Node()], out.Back.MTU)
				if broken, is := errors.AsType[*testbed.BrokenError](judgeWay(out, from.Node(), to.Node(), Pod, denials)); is {
					ways.Broken = append(ways.Broken, broken)
				}
				return nil
			})
		}
	}
	err = group.Wait()
	return ways, err
}
