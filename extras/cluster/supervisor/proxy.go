package supervisor

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/extras/cluster/node"
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
	maps := s.api.ConfigMaps(metav1.NamespaceSystem)
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
		if err := s.api.ConfigMaps(metav1.NamespaceSystem).Delete(ctx, serviceProxy, metav1.DeleteOptions{}); err != nil {
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

const (
	serviceMultus = "multus"
	// multusConf is read before the cluster's own: the runtime takes the first by name.
	multusConf = cniConf + "/00-multus.conf"
	// sharedFolder is one that all nodes see, so that the plugin host-local gives each address of a network once.
	sharedFolder = "/run/cni/addresses"

	multusGroup = "/apis/k8s.cni.cncf.io/v1"
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// definition is the kind NetworkAttachmentDefinition, as https://github.com/k8snetworkplumbingwg/multi-net-spec has it.
//
//go:embed files/multus.json
var definition []byte

// define makes the kind of object that describes secondary networks, unless it is there, and waits until it can be used.
func (s *supervisor) define(ctx context.Context) error {
	api := s.api.REST
	err := api.Post().AbsPath(definitions).SetHeader("Content-Type", "application/json").Body(definition).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("define secondary networks: %w", err)
	}
	return until(ctx, "secondary networks to be known", func(ctx context.Context) error {
		var status int
		err := api.Get().AbsPath(multusGroup, "network-attachment-definitions").Do(ctx).StatusCode(&status).Error()
		if err == nil && status != http.StatusOK {
			return fmt.Errorf("the API server answers %d", status)
		}
		return err
	})
}

// cniFiles configure the plugins of a node. Multus attaches pods to the network of the conflist first, and then to those that they ask for.
func (m *member) cniFiles(c CNI, multus Multus) []node.File {
	conf := c.conflist(m.prefixes()...)
	if multus != MultusOn {
		return []node.File{conf}
	}
	words := map[string]any{"first": string(conf.Content)}
	return []node.File{conf, {Path: multusConf, Mode: 0o600, Content: rendered("multus.conf", words)}}
}

// switchMultus has Multus attach pods from now on, or no longer. Pods live on; what describes networks stays.
func (s *supervisor) switchMultus(ctx context.Context, multus Multus) error {
	if multus == MultusOn {
		if err := s.define(ctx); err != nil {
			return err
		}
	}
	return s.each(func(m *member) error {
		if multus == MultusOff {
			if _, err := m.node.Run("rm", "-f", multusConf); err != nil {
				return err
			}
		}
		return m.node.Write(m.cniFiles(s.config.CNI, multus)...)
	})
}
