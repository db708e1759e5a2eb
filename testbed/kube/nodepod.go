package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"netdelta/testbed"
)

// NodePodSecurity is what a pod on a node needs to make nodes of testbeds there: all rights of the node's root over its kernel, since
// namespaces, devices of every kind, settings and eBPF programs take most of them. Its file system can't be written to, and the node's is
// not in it.
func NodePodSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false), Privileged: new(true), ReadOnlyRootFilesystem: new(true)}
}

// nodePod is the wish for a pod that makes nodes of testbeds on a node.
func nodePod(name, node string) Wish {
	return Wish{Name: name, Role: RoleNode, HostNetwork: true, Node: node, Security: NodePodSecurity()}
}

// AdmitsNodePods tries whether the namespace admits the pods of LaunchNodePod. None is made.
func (d *Driver) AdmitsNodePods(ctx context.Context) error {
	return d.privileged(dryCreate(ctx, d.cluster.API.Pods(d.cluster.Namespace), "pod", d.launcher.Manifest(nodePod("trial", ""))))
}

// privileged says what to do where a namespace does not admit privileged pods.
func (d *Driver) privileged(err error) error {
	guarded, is := errors.AsType[*GuardedError](err)
	if !is {
		return err
	}
	return &testbed.UnsupportedError{
		Feature: "--what-if", Need: fmt.Sprintf("privileged pods, which namespace %s does not admit (%v)", d.cluster.Namespace, guarded), Fix: privileged,
	}
}

// LaunchNodePod makes a privileged pod in the network namespace of a node, and waits until it is up. It goes with the run.
func (d *Driver) LaunchNodePod(ctx context.Context, node string) (*LivePod, error) {
	if err := d.lease.hold(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	number := d.nodePods
	d.nodePods++
	d.mu.Unlock()
	pod, err := d.launcher.Launch(ctx, nodePod(fmt.Sprintf("node-%d", number), node))
	if err != nil {
		return nil, fmt.Errorf("put a privileged pod on node %s: %w", node, d.privileged(err))
	}
	return pod, nil
}

// Conversation is a program in a pod whose input can be ended while it is still heard.
type Conversation struct{ *stream }

// Converse starts a program of netdelta's own in the pod, with these arguments. The context covers the start.
func (p *LivePod) Converse(ctx context.Context, args ...string) (*Conversation, error) {
	s, err := p.start(ctx, testbed.Command{Path: p.Program(), Args: args})
	if err != nil {
		return nil, err
	}
	return &Conversation{s}, nil
}

// CloseWrite ends the program's input.
func (c *Conversation) CloseWrite() error {
	c.closing.Store(true)
	return c.stdin.Close()
}

// Closing says whether the program's input was ended.
func (c *Conversation) Closing() bool { return c.closing.Load() }

// Ended is closed when the program has ended.
func (c *Conversation) Ended() <-chan struct{} { return c.done }

// Lost is why a program ended that was to go on, by what the cluster says of its pod and its node.
func (c *Conversation) Lost() error { return c.lost() }

// NodeAgentSecurity is what a node agent's container needs on a node: root without any of its rights but two. NET_RAW is for the
// sample of packets, NET_ADMIN for room for more of them than any user may have waiting. The container is not privileged, and
// its file system can't be written to.
func NodeAgentSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(int64(0)), RunAsNonRoot: new(false), Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}
