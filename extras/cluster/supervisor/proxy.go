package supervisor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/netns"
)

// Where kube-proxy of each node answers, in the node's namespace.
const (
	proxyHealth = "http://127.0.0.1:10256/healthz"
	proxyMode   = "http://127.0.0.1:10249/proxyMode"
)

// awaitProxies waits until kube-proxy has led all services to their pods by a mode, in every node.
func (s *supervisor) awaitProxies(ctx context.Context, mode Proxy) error {
	// Who looks at the cluster looks there, as kubeadm leaves it.
	if err := s.publish(ctx, serviceProxy, map[string]string{"config.conf": string(s.config.proxyFile(mode).Content)}); err != nil {
		return err
	}
	return s.await(ctx, "kube-proxy of %s by "+string(mode), func(ctx context.Context, m *member) error {
		got, err := get(ctx, m.space, proxyMode)
		if err != nil {
			return err
		}
		if got != string(mode) {
			return fmt.Errorf("it uses %q", got)
		}
		_, err = get(ctx, m.space, proxyHealth)
		return err
	})
}

// publish writes a ConfigMap of the cluster's own parts, in place of what it had.
func (s *supervisor) publish(ctx context.Context, name string, data map[string]string) error {
	maps := s.api.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	_, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", name, err)
	}
	return nil
}

// get asks a program in a namespace.
func get(ctx context.Context, space *netns.Namespace, url string) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		return dial(space, address)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, response.Status)
	}
	return strings.TrimSpace(string(body)), nil
}

// switchProxy restarts kube-proxy in each node with another mode, which also removes the rules of the old one, or ends it.
func (s *supervisor) switchProxy(ctx context.Context, mode Proxy) error {
	if mode == NoProxy {
		if err := s.api.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, serviceProxy, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if err := s.each(func(m *member) error {
		if s.config.Proxy != NoProxy {
			if err := m.node.StopService(serviceProxy, true); err != nil {
				return err
			}
		}
		if mode == NoProxy {
			_, err := m.node.Run("kube-proxy", "--cleanup")
			return err
		}
		if err := m.node.Write(s.config.proxyFile(mode)); err != nil {
			return err
		}
		return s.start(m, serviceProxy)
	}); err != nil || mode == NoProxy {
		return err
	}
	return s.awaitProxies(ctx, mode)
}

// policyHealth is where the policy engine of each node answers once policies are in effect, in the node's namespace.
const policyHealth = "http://127.0.0.1:10258/healthz"

// bridged says whether packets between pods of one node, which a bridge joins, pass the rules of iptables: without that an engine
// would not see them.
const bridged = "/proc/sys/net/bridge/bridge-nf-call-"

// enterPolicy starts a policy engine in each node and returns when policies are in effect.
func (s *supervisor) enterPolicy(ctx context.Context, p Policy) error {
	if p != KubeNetworkPolicies {
		return nil
	}
	if err := s.each(func(m *member) error {
		if _, err := m.node.Run("sh", "-c", "echo 1 >"+bridged+"iptables && echo 1 >"+bridged+"ip6tables"); err != nil {
			return fmt.Errorf("have the packets of %s's bridge pass iptables: %w", m.name, err)
		}
		return s.start(m, servicePolicy)
	}); err != nil {
		return err
	}
	return s.await(ctx, "the policy engine of %s", func(ctx context.Context, m *member) error {
		_, err := get(ctx, m.space, policyHealth)
		return err
	})
}

// switchPolicy brings another policy engine into effect. One that is asked to end takes its rules with it.
func (s *supervisor) switchPolicy(ctx context.Context, p Policy) error {
	if s.config.Policy == KubeNetworkPolicies {
		if err := s.each(func(m *member) error { return m.node.StopService(servicePolicy, false) }); err != nil {
			return err
		}
	}
	// Until another is in effect there is none.
	s.config.Policy = NoPolicy
	if err := s.enterPolicy(ctx, p); err != nil {
		return err
	}
	s.config.Policy = p
	return nil
}
