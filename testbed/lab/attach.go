package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/internal/owner"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab/plugin"
	"netdelta/unit"
)

// learned is what plugins made of a pod.
type learned struct {
	address netip.Addr
	mtu     unit.Bytes
}

// attachments are the pods of a network that plugins have attached, or have begun to.
type attachments struct {
	state  string // a folder of this lab's own
	begun  []attachment
	closed bool
}

// attachment is one of them.
type attachment struct {
	plugin.Attachment
	caller *plugin.Caller
	// added says that the plugins have said so.
	added bool
}

// attach has the plugins of a list attach a pod.
func (b *builder) attach(ctx context.Context, op network.Attach) error {
	all, err := b.attachments()
	if err != nil {
		return err
	}
	node, err := b.in(op.Node)
	if err != nil {
		return err
	}
	pod, err := b.in(op.In)
	if err != nil {
		return err
	}
	a := attachment{
		Attachment: plugin.Attachment{
			File: op.File, List: op.List, ID: op.In.String(), Namespace: pod.ns, Interface: op.Name, Address: op.Address,
			MAC: op.MAC.String(), Port: op.FirstPort,
		},
		caller: &plugin.Caller{Node: node.ns, State: filepath.Join(all.state, op.Node.String()), Path: plugin.Path(), Mark: b.mark},
	}
	if len(all.begun) == 0 {
		if err := a.caller.Validate(ctx, a.Attachment); err != nil {
			return err
		}
		b.notes = append(b.notes, provenance(op))
	}
	all.begun = append(all.begun, a)
	said, err := a.caller.Add(ctx, a.Attachment)
	if err != nil {
		return lacking(op, err)
	}
	all.begun[len(all.begun)-1].added = true
	return b.learn(op, pod, said)
}

// provenance says what a network of plugins was made of, so that it can be made again.
func provenance(op network.Attach) string {
	files := gather.Each(op.Plugins, func(name string) string { return plugin.Find(name, plugin.Path()) })
	return fmt.Sprintf("%s%s: the list's SHA-256 sum is %s; its plugins are %s", network.CNIPrefix, op.File, op.Sum, strings.Join(files, ", "))
}

// attachments are the pods of the network that is being built.
func (b *builder) attachments() (*attachments, error) {
	for _, c := range b.companions {
		if found, is := c.(*attachments); is {
			return found, nil
		}
	}
	state, err := owner.TempDir()
	if err != nil {
		return nil, fmt.Errorf("make a folder for what plugins keep: %w", err)
	}
	made := &attachments{state: state}
	b.companions = append(b.companions, made)
	return made, nil
}

// learn notes what the plugins gave to a pod.
func (b *builder) learn(op network.Attach, pod *space, addresses []netip.Prefix) error {
	i := slices.IndexFunc(addresses, func(p netip.Prefix) bool { return p.Addr().Is4() == op.Address.Addr().Is4() })
	if i < 0 {
		return fmt.Errorf("the CNI plugins of %s gave the pod no address of the family of %s: they gave %v", op.File, op.Address.Addr(), addresses)
	}
	given := addresses[i].Addr()
	if b.fixed && given != op.Address.Addr() {
		return fmt.Errorf("the CNI plugins of %s gave the address %s where %s was asked for, and pods that outlive their network must keep theirs; use a plugin for addresses that takes wishes (host-local, static)",
			op.File, given, op.Address.Addr())
	}
	pod.forget()
	link, err := pod.nl.LinkByName(op.Name)
	if err != nil {
		return fmt.Errorf("the CNI plugins of %s said that they attached the pod, but there is no device %s in it: %w", op.File, op.Name, err)
	}
	if b.learned == nil {
		b.learned = map[int]learned{}
	}
	b.learned[op.In.Index] = learned{given, unit.Bytes(link.Attrs().MTU)}
	b.expect(op.Device)
	b.expectAddress(op.In, given)
	return nil
}

// relearn puts into a plan what plugins gave to its pods.
func (b *builder) relearn(p network.Plan) network.Plan {
	if len(b.learned) == 0 {
		return p
	}
	p.Pods = slices.Clone(p.Pods)
	for pod, l := range b.learned {
		p.Pods[pod].Address = l.address
		p.MTU = min(p.MTU, l.mtu)
	}
	return p
}

// lacking recognises a plugin's complaint that the kernel lacks something.
func lacking(op network.Attach, err error) error {
	if says(strings.ToLower(err.Error()), "operation not supported", "unknown device type", "protocol not supported") {
		return &testbed.UnsupportedError{
			Feature: "network " + network.CNIPrefix + op.File, Need: fmt.Sprintf("what its plugins ask of the kernel (%v)", err),
			Fix: "run it on a kernel that has it",
		}
	}
	return err
}

// start implements starter: once all pods are attached, the plugins check each.
func (all *attachments) start(ctx context.Context, _ *Testbed) error {
	for _, a := range all.begun {
		if err := a.caller.Check(ctx, a.Attachment); err != nil {
			return fmt.Errorf("%s was attached, but not well: %w", a.ID, err)
		}
	}
	return nil
}

// Close implements io.Closer: it has the plugins detach all pods, the last one first. What they could not attach they are told
// to detach too, as the specification wants it, but need not be able to.
func (all *attachments) Close() error {
	if all.closed {
		return nil
	}
	all.closed = true
	var failed error
	for _, a := range slices.Backward(all.begun) {
		if err := a.caller.Delete(context.Background(), a.Attachment); err != nil && a.added {
			failed = errors.Join(failed, fmt.Errorf("detach %s: %w", a.ID, err))
		}
	}
	if err := os.RemoveAll(all.state); err != nil {
		failed = errors.Join(failed, fmt.Errorf("remove what plugins have kept: %w", err))
	}
	return failed
}

// pluginNeeds are the needs of a plan's plugins, as far as the CNI project maintains them: what others need shows when they are
// called. The error says which plugin this machine lacks.
func pluginNeeds(p network.Plan) (needs []network.Need, err error) {
	known := map[string][]network.Need{
		"bridge": {network.NeedVeth, network.NeedBridge}, "ptp": {network.NeedVeth}, "macvlan": {network.NeedMacvlan}, "ipvlan": {network.NeedIPVlan},
	}
	path := plugin.Path()
	for _, attach := range network.Of[network.Attach](p.Ops) {
		for _, name := range attach.Plugins {
			if plugin.Find(name, path) == "" {
				return nil, &testbed.UnsupportedError{
					Feature: "network " + p.Network, Need: fmt.Sprintf("the CNI plugin %s (%s)", name, plugin.Where(path)),
					Fix: "install it (Debian's package containernetworking-plugins has the usual ones), or name the folder that holds it in " + plugin.Variable,
				}
			}
			needs = append(needs, known[name]...)
		}
	}
	return needs, nil
}
