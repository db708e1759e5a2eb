package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"netdelta/result"
	"netdelta/testbed/kube"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
)

// machine is a node of the cluster, reached by exec streams of a privileged pod on it.
type machine struct {
	driver *kube.Driver
	node   string

	mu  sync.Mutex
	pod *kube.LivePod // nil until it is needed
}

var _ servers.Carrier = (*machine)(nil)

// String implements servers.Carrier.
func (m *machine) String() string { return m.node }

// Address implements servers.Carrier.
func (m *machine) Address() string { return m.node }

// up is the node's pod.
func (m *machine) up(ctx context.Context) (_ *kube.LivePod, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pod == nil {
		m.pod, err = m.driver.LaunchNodePod(ctx, m.node)
	}
	return m.pod, err
}

// replace has the next conversation be with another pod: this one may have been deleted, or its node started again.
func (m *machine) replace(pod *kube.LivePod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pod == pod {
		m.pod = nil
	}
}

// Begin implements servers.Carrier.
func (m *machine) Begin(ctx context.Context, order server.Order) (servers.Link, error) {
	pod, err := m.up(ctx)
	if err != nil {
		return nil, err
	}
	if at := pod.HostAddress(result.IPv4); at.IsValid() {
		order.Address = at.String()
	} else {
		order.Address = pod.HostAddress(result.IPv6).String()
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	c, err := pod.Converse(ctx, server.Verb, string(text))
	if err != nil {
		m.replace(pod)
		return nil, fmt.Errorf("set up node %s: %w", m.node, err)
	}
	return &link{Conversation: c, node: m.node, leave: servers.Leave(order)}, nil
}

// link is the exec stream to a supervisor.
type link struct {
	*kube.Conversation
	node  string
	leave time.Duration

	close sync.Once
	err   error // how it closed
}

// Read implements io.Reader. Where the stream ends although it was to go on, its error says why.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conversation.Read(b)
	if errors.Is(err, io.EOF) && !l.Closing() {
		err = fmt.Errorf("node %s: %w", l.node, l.Lost())
	}
	return n, err
}

// Close implements servers.Link.
func (l *link) Close() error {
	l.close.Do(func() {
		_ = l.CloseWrite() // it never fails
		go func() { _, _ = io.Copy(io.Discard, l.Conversation) }()
		select {
		case <-l.Ended():
			l.err = l.Wait()
		case <-time.After(l.leave):
			l.err = errors.Join(fmt.Errorf("it did not end within %s of the end of its input: killed", l.leave), l.Kill())
		}
	})
	return l.err
}

// Fail implements servers.Link.
func (l *link) Fail(doing string, err error) error {
	if closed := l.Close(); closed != nil && !errors.Is(err, closed) {
		err = fmt.Errorf("%w: %w", err, closed)
	}
	return fmt.Errorf("%s node %s: %w", doing, l.node, err)
}
