package supervisor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{CNI: Bridge, Workers: 2}, ""},
		{Config{CNI: FlannelVXLAN, Workers: 9}, ""},
		{Config{CNI: Bridge, Workers: 1, IPv6: true}, ""},
		{Config{CNI: Bridge}, "0 workers"},
		{Config{CNI: FlannelHostGW, Workers: 2, IPv6: true}, "unsupported: flannel-host-gw with IPv6"},
		{Config{CNI: CalicoVXLAN, Workers: 2}, ""},
		{Config{CNI: CalicoRoutes, Workers: 2, Policy: KubeNetworkPolicies}, "calico enforces policies itself"},
		{Config{CNI: CiliumVXLAN, Workers: 2, IPv6: true}, "unsupported: cilium-vxlan with IPv6"},
		{Config{CNI: CiliumNative, Workers: 2, Multus: MultusOn}, "unsupported: cilium-native with Multus"},
		{Config{CNI: CiliumNative, Workers: 2, Proxy: NoProxy}, "unsupported: cilium-native with kube-proxy none"},
		{Config{CNI: CiliumEBPF, Workers: 2}, ""},
		{Config{CNI: CiliumEBPF, Workers: 2, Proxy: NFTables}, "unsupported: cilium-ebpf with kube-proxy nftables"},
	} {
		err := c.config.complete().check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v gives %v, want %q", c.config, err, c.want)
		}
	}
}

// TestChange: what a cluster becomes by a change, and which changes no cluster can make.
func TestChange(t *testing.T) {
	for _, c := range []struct {
		from, to  CNI
		with      Config
		wantProxy Proxy
		want      string
	}{
		{Bridge, FlannelVXLAN, Config{}, IPTables, ""},
		{CalicoVXLAN, CalicoRoutes, Config{Proxy: NFTables}, NFTables, ""},
		{CiliumNative, CiliumEBPF, Config{}, NoProxy, ""},
		{CalicoBGP, "", Config{Proxy: NFTables}, NFTables, ""},
		{CalicoVXLAN, CalicoBGP, Config{}, "", "'make cluster-up CNI=calico-bgp'"},
		{CiliumEBPF, CiliumVXLAN, Config{}, IPTables, ""},
		{CiliumEBPF, CiliumVXLAN, Config{Proxy: NFTables}, NFTables, ""},
		{CiliumEBPF, "", Config{Proxy: NFTables}, "", "unsupported: cilium-ebpf with kube-proxy nftables"},
		{Bridge, CiliumVXLAN, Config{}, "", "'make cluster-up CNI=cilium-vxlan'"},
		{CalicoVXLAN, CiliumVXLAN, Config{}, "", "pods of one do not live on under the other"},
		{CalicoVXLAN, "", Config{Policy: KubeNetworkPolicies}, "", "calico enforces policies itself"},
	} {
		to := c.with
		to.CNI = c.to
		got, err := Config{CNI: c.from, Workers: 2}.complete().with(to)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %+v gives %v, want %q", c.from, to, err, c.want)
		}
		if err == nil && (got.CNI != cmp.Or(c.to, c.from) || got.Proxy != c.wantProxy || got.Workers != 2) {
			t.Errorf("%s to %+v gives %+v, want kube-proxy %s", c.from, to, got, c.wantProxy)
		}
	}
}

// TestCilium: a mode has the options of its own way of packets, and no other's.
func TestCilium(t *testing.T) {
	for _, c := range []struct {
		cni   CNI
		wants map[string]string
	}{
		{CiliumVXLAN, map[string]string{"routing-mode": "tunnel", "tunnel-protocol": "vxlan", "auto-direct-node-routes": "", "kube-proxy-replacement": "false"}},
		{CiliumNative, map[string]string{"routing-mode": "native", "tunnel-protocol": "", "auto-direct-node-routes": "true", "bpf-lb-sock": "false"}},
		{CiliumEBPF, map[string]string{"routing-mode": "native", "kube-proxy-replacement": "true", "bpf-lb-sock": "true", "cgroup-root": ciliumGroups}},
	} {
		got := ciliumOptions(c.cni)
		for name, want := range c.wants {
			if got[name] != want {
				t.Errorf("%s: option %s is %q, want %q", c.cni, name, got[name], want)
			}
		}
	}
}

func TestConflist(t *testing.T) {
	var prefixes []*net.IPNet
	for _, text := range []string{"10.244.1.0/24", "fd77:244:0:1::/64"} {
		_, p, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		prefixes = append(prefixes, p)
	}
	for _, c := range []struct {
		cni      CNI
		prefixes []*net.IPNet
		want     string
	}{
		{Bridge, prefixes, `{
  "cniVersion": "0.3.1",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "hairpinMode": true,
      "ipam": {
        "type": "host-local",
        "ranges": [
          [
            {
              "subnet": "10.244.1.0/24"
            }
          ],
          [
            {
              "subnet": "fd77:244:0:1::/64"
            }
          ]
        ],
        "routes": [
          {
            "dst": "0.0.0.0/0"
          },
          {
            "dst": "::/0"
          }
        ]
      }
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      }
    }
  ]
}
`},
		{FlannelVXLAN, prefixes[:1], `{
  "cniVersion": "0.3.1",
  "name": "pods",
  "plugins": [
    {
      "type": "flannel",
      "delegate": {
        "hairpinMode": true,
        "isDefaultGateway": true
      }
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      }
    }
  ]
}
`},
	} {
		var got bytes.Buffer
		if err := json.Indent(&got, c.cni.conflist(c.prefixes...).Content, "", "  "); err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.cni, got.String(), c.want)
		}
	}
}

// TestPrograms: every node has programs under each CNI, and what they read can be written.
func TestPrograms(t *testing.T) {
	for _, cni := range choices()[0].values {
		for number, name := range []string{"cp", "w1"} {
			s := &supervisor{config: Config{CNI: CNI(cni), IPv6: CNI(cni) == Bridge}}
			m := &member{name: name, number: number}
			agents := s.programs(CNI(cni), m).Agents
			if (len(agents) == 0) != (CNI(cni) == Bridge) {
				t.Errorf("%s has the agents %v on %s", cni, agents, name)
			}
			for _, one := range s.services(m) {
				if one.Name == "" || len(one.Args) == 0 || strings.Contains(fmt.Sprint(one), "<no value>") {
					t.Errorf("%s: a program of %s is %+v", cni, name, one)
				}
			}
		}
	}
	for file, words := range map[string]map[string]any{
		"containerd.toml": {"image": "i"}, "Corefile": nil, "kubelet.yaml": {"group": "/g"}, "kube-dns.yaml": {"address": nodeAddress(0)},
		"calico.conflist": {"node": "w1"}, "multus.conf": {"first": "{}"},
	} {
		if len(rendered(file, words)) == 0 {
			t.Errorf("%s is empty", file)
		}
	}
}
