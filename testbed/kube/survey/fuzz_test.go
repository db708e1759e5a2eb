package survey

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// texts are what plugins write, and what somebody may have written in its place.
func texts(f *testing.F) {
	f.Helper()
	for _, text := range []string{
		"", "{}", "null", "[]", `{"Network":"10.244.0.0/16","Backend":{"Type":"vxlan","MTU":1400,"DirectRouting":true}}`,
		`{"Backend":{"Type":"\u001b[31m","MTU":-1}}`, `{"Backend":"vxlan"}`, `{"Backend":{"MTU":1e400}}`,
		"mode: nftables\n", "mode: [iptables]\n", "mode: &a {b: *a}\n", "a: &a [x,x]\nb: &b [*a,*a]\nmode: x\n",
		"trafficEncapMode: hybrid\ntunnelType: vxlan\ndefaultMTU: 99999999999\nantreaProxy: {proxyAll: true}\n",
		`{"items":[{"spec":{"cidr":"10.0.0.0/8","ipipMode":"Always"}},{"spec":{"cidr":"::/0"}}]}`,
		`{"items":[{"metadata":{"name":"default"},"spec":{"bpfEnabled":true,"wireguardEnabled":true}}]}`, `{"items":{}}`,
	} {
		f.Add(text)
	}
	if path, err := filepath.Abs("testdata/networks/antrea.yaml"); err == nil {
		if text, err := os.ReadFile(path); err == nil {
			f.Add(string(text))
		}
	}
}

// FuzzConfigurations: whatever stands in a plugin's configuration, it is read or refused, and a network comes of it that is judged.
func FuzzConfigurations(f *testing.F) {
	texts(f)
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseFlannel(text); err == nil && (c.Backend.MTU < 0 || c.Backend.MTU > maxMTU) {
			t.Errorf("an MTU of %d", c.Backend.MTU)
		}
		_, _ = parseYAML[proxyConf]("kube-proxy's config.conf", text)
		_, _ = parseYAML[antreaConf]("antrea-agent.conf of Antrea", text)
		e := evidence{
			nodes:   []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"node.antrea.io/mac-address": text}}}},
			configs: map[string]map[string]string{},
		}
		for _, place := range []string{"kube-flannel/" + flannelConfig, "kube-system/" + proxyConfig, "kube-system/" + antreaConfig} {
			e.configs[place] = map[string]string{"net-conf.json": text, "config.conf": text, "antrea-agent.conf": text}
		}
		if pools, err := parseItems[pool]("IPPools", []byte(text)); err == nil {
			e.pools = pools
		}
		if felix, err := parseItems[felixConfiguration]("FelixConfigurations", []byte(text)); err == nil {
			e.felix = felix
		}
		network := identify(e)
		if network.MTU < 0 || network.MTU > maxMTU {
			t.Errorf("pods with an MTU of %d", network.MTU)
		}
		if network.OnlyAcross && (network.Encapsulation == "" || network.Encapsulation == "none") {
			t.Errorf("encapsulates between subnets, in nothing: %+v", network)
		}
		Judge(Survey{Network: network, Services: reached(e, network)})
	})
}

// FuzzAnnotations: whatever stands in annotations, labels and options, a network comes of it.
func FuzzAnnotations(f *testing.F) {
	for _, v := range []string{"vxlan", "host-gw", "", "\x1b]0;title\a", "wireguard", "none", "aws-cni", "strict", "99999999999999999999"} {
		f.Add(flannelBackendType, v)
		f.Add("projectcalico.org/IPv4VXLANTunnelAddr", v)
		f.Add("routing-mode", v)
		f.Add("tunnel", v)
		f.Add("mtu", v)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: value, Annotations: map[string]string{key: value}, Labels: map[string]string{key: value}}}
		for _, configs := range []map[string]map[string]string{nil, {"kube-system/" + ciliumConfig: {key: value}}, {"kube-system/calico-config": {key: value}}} {
			network := identify(evidence{nodes: []corev1.Node{node}, configs: configs})
			if network.Plugin == "" && network.Doubt == "" {
				t.Errorf("unknown, and it does not say why: %+v", network)
			}
			if network.MTU < 0 || network.MTU > maxMTU {
				t.Errorf("pods with an MTU of %d", network.MTU)
			}
		}
		describe(node, func(corev1.Taint) bool { return true })
	})
}
