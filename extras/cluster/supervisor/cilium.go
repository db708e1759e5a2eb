package supervisor

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/extras/cluster/node"
)

const (
	serviceCilium         = "cilium-agent"
	serviceCiliumOperator = "cilium-operator"

	// ciliumConfig is the ConfigMap with the options of its agents.
	ciliumConfig = "cilium-config"
	// ciliumGroups is where a node's agent finds the control groups that it may attach programs to.
	ciliumGroups = "/run/cilium/cgroupv2"
	// ciliumTools are programs that the agent looks for under other names than the machine has them.
	ciliumTools   = "/run/cilium/tools"
	ciliumPlugins = cniConf + "/05-cilium.conflist"
	ciliumHealth  = "http://127.0.0.1:9879/healthz"
	// ciliumDevice is by what packets leave a node for the pods of another where they are encapsulated: a program of it does that.
	ciliumDevice = "cilium_host"
)

// ciliumOptions are the options of Cilium's agents for a mode. What they leave out needs a kernel or a program that is not there.
func ciliumOptions(c CNI) map[string]string {
	options := map[string]string{
		"agent-health-port":               "9879",
		"bpf-root":                        "/sys/fs/bpf",
		"cgroup-root":                     ciliumGroups,
		"cluster-id":                      "0",
		"cluster-name":                    "default",
		"cni-exclusive":                   "true",
		"cni-log-file":                    node.LogFolder + "/cilium-cni.log",
		"datapath-mode":                   "veth",
		"devices":                         uplink,
		"enable-endpoint-health-checking": "false",
		"enable-envoy-config":             "false",
		"enable-health-checking":          "false",
		"enable-hubble":                   "false",
		"enable-ipv4":                     "true",
		"enable-ipv4-masquerade":          "true",
		"enable-ipv6":                     "false",
		"enable-ipv6-masquerade":          "false",
		"enable-k8s-networkpolicy":        "true",
		"enable-l7-proxy":                 "false",
		"enable-policy":                   "default",
		"enable-xt-socket-fallback":       "false",
		"identity-allocation-mode":        "crd",
		"ipam":                            "kubernetes",
		"k8s-kubeconfig-path":             kubeconfigOf(agentUser),
		"monitor-aggregation":             "medium",
		"operator-api-serve-addr":         "127.0.0.1:9234",
		"preallocate-bpf-maps":            "false",
		"write-cni-conf-when-ready":       ciliumPlugins,

		"routing-mode":           "tunnel",
		"tunnel-protocol":        "vxlan",
		"kube-proxy-replacement": "false",
		"bpf-lb-sock":            "false",
		"enable-bpf-masquerade":  "false",
	}
	if c != CiliumVXLAN {
		delete(options, "tunnel-protocol")
		maps.Copy(options, map[string]string{
			"routing-mode": "native", "auto-direct-node-routes": "true", "ipv4-native-routing-cidr": podsPrefix,
		})
	}
	if c == CiliumEBPF {
		maps.Copy(options, map[string]string{
			"kube-proxy-replacement": "true", "bpf-lb-sock": "true", "enable-bpf-masquerade": "true",
		})
	}
	return options
}

// ciliumAgents are Cilium's programs on a node. Each takes its options from the ConfigMap when it starts, as in Cilium's own pods.
func ciliumAgents(m *member) []node.Service {
	one := func(service string) node.Service {
		folder := "/run/cilium/" + service
		script := fmt.Sprintf("rm -rf %[1]s && %[2]s/cilium-dbg build-config --k8s-kubeconfig-path=%[3]s --source config-map:%[4]s/%[5]s --dest %[1]s && "+
			"exec %[2]s/%[6]s --config-dir=%[1]s", folder, productFolder, kubeconfigOf(agentUser), metav1.NamespaceSystem, ciliumConfig, service)
		return node.Service{Name: service, Args: []string{"sh", "-c", script}, Env: []string{
			"K8S_NODE_NAME=" + m.name, "CILIUM_K8S_NAMESPACE=" + metav1.NamespaceSystem, "PATH=" + ciliumTools + ":" + node.Path,
		}}
	}
	if m.number == 0 {
		return []node.Service{one(serviceCilium), one(serviceCiliumOperator)}
	}
	return []node.Service{one(serviceCilium)}
}

// enterCilium brings a mode of Cilium into effect.
func (s *supervisor) enterCilium(ctx context.Context, c CNI) error {
	if err := s.publish(ctx, ciliumConfig, ciliumOptions(c)); err != nil {
		return err
	}
	// The agent writes what it finds out of the kernel into the folder of the sources that it compiles.
	const sources = "test -e /var/lib/cilium/bpf || { mkdir -p /var/lib/cilium && cp -r " + productFolder + "/bpf /var/lib/cilium/bpf; }"
	if err := s.each(func(m *member) error {
		if _, err := m.node.Run("sh", "-c", sources); err != nil {
			return fmt.Errorf("copy the sources of Cilium's programs: %w", err)
		}
		return s.startAgents(c, m)
	}); err != nil {
		return err
	}
	device := uplink
	if c == CiliumVXLAN {
		device = ciliumDevice
	}
	return s.await(ctx, "node %s to reach the pods of the others by "+string(c), func(ctx context.Context, m *member) error {
		if _, err := get(ctx, m.space, ciliumHealth); err != nil {
			return err
		}
		if _, err := m.node.Run("test", "-s", ciliumPlugins); err != nil {
			return err
		}
		if err := m.regenerated(); err != nil {
			return err
		}
		return m.space.Do(func() error {
			return s.peers(m, func(_ *member, pods *net.IPNet, _ net.IP) error { return leavesBy(host(pods, 2), device) })
		})
	})
}

// regenerated says so unless all pods of a node have the programs of the agent's present options. The agent calls itself healthy before.
func (m *member) regenerated() error {
	states, err := m.node.Run(productFolder+"/cilium-dbg", "endpoint", "list", "-o", "jsonpath={[*].status.state}")
	if err != nil {
		return err
	}
	all := strings.Fields(states)
	if len(all) == 0 || slices.ContainsFunc(all, func(state string) bool { return state != "ready" }) {
		return fmt.Errorf("the endpoints of Cilium are %q", all)
	}
	return nil
}
