package kube

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"netdelta/result"
	"netdelta/testbed/kube/inside"
)

// enforced proves that the policies are in effect at a server that the client reaches: it does not reach a port that none of them
// names. What a policy does to pods in their node's namespace is open, so there is nothing to prove there.
func (t *Testbed) enforced(ctx context.Context, client, server *pod) error {
	if t.spec.Conditions.Plain().Policy != result.PolicyKubernetes || server.host {
		return nil
	}
	c, s := client.alive(), server.alive()
	port := server.trialPort() + 1
	answerer, err := listen(ctx, t.driver.cluster, s.place, port)
	if err != nil {
		return err
	}
	defer func() { _ = answerer.Close() }() // it has served
	trial := inside.Trial{At: []netip.AddrPort{netip.AddrPortFrom(s.AddressOf(t.family()), port)}}
	for waited := range Polling(ctx, apiPause) {
		out, err := ask[inside.Outcome](ctx, t.driver.cluster, c.place, inside.Try, trial)
		switch {
		case err != nil:
			return fmt.Errorf("try from %s whether policies are in effect: %w", client.Name(), err)
		case out.Error != "":
			t.driver.launcher.options.Log("policies are in effect at %s, %s after it was asked", server.Name(), waited.Round(time.Millisecond))
			return nil
		case waited > enforcedWithin:
			return unenforced()
		}
	}
	return context.Cause(ctx)
}

// idle has at least n pods up that do nothing but be let in by policies. Streams keep them up. They stay until the driver is closed.
func (d *Driver) idle(ctx context.Context, n int) error {
	d.idling.Lock()
	defer d.idling.Unlock()
	from := len(d.idlePods)
	pods := d.cluster.API.Pods(d.cluster.Namespace)
	for i := from; i < n; i++ {
		manifest := d.launcher.Manifest(Wish{Name: fmt.Sprintf("peer%d", i), Role: RolePolicy, Labels: map[string]string{LabelPeer: strconv.Itoa(i)}})
		if _, err := create(ctx, pods, "the idle pod", manifest); err != nil {
			return err
		}
	}
	for i := from; i < n; i++ {
		name := d.Run().Name(fmt.Sprintf("peer%d", i))
		if _, err := d.launcher.await(ctx, d.cluster.Namespace, name); err != nil {
			return fmt.Errorf("wait for the idle pod %s: %w; fewer of them are enough with policy.pods", name, err)
		}
		at := ContainerRef{Namespace: d.cluster.Namespace, Pod: name, Container: containerName, Program: programInImage}
		hold := task(at, inside.Hold)
		if d.launcher.options.Image == "" {
			hold = []string{"cat"}
		}
		s, err := open(ctx, d.cluster, at, hold)
		if err != nil {
			return fmt.Errorf("keep the idle pod %s up: %w", name, err)
		}
		d.idlePods = append(d.idlePods, s)
	}
	return nil
}

// endIdle lets go of the idle pods; they are removed with all that the run has made.
func (d *Driver) endIdle() {
	d.idling.Lock()
	defer d.idling.Unlock()
	for _, s := range d.idlePods {
		s.cut()
	}
	d.idlePods = nil
}
