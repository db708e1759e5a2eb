package kube

import (
	"errors"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

func TestNamed(t *testing.T) {
	for _, name := range []string{Host, Pod, ClusterIP, NodePort, Headless, "multus:fast/sriov-net.1"} {
		if n, err := Named(name); err != nil || n.Name != name || n.Summary == "" || len(n.UsedBy) == 0 {
			t.Errorf("%s: got %+v, %v", name, n, err)
		}
	}
	var unknown *network.UnknownError
	if _, err := Named("nodport"); !errors.As(err, &unknown) || unknown.Nearest != NodePort {
		t.Errorf("nodport: got %v", err)
	}
	for _, name := range []string{"multus:", "multus:a", "multus:a/", "multus:/b", "multus:a/b/c", "multus:A/b", "multus:a/\x1b[31m"} {
		if _, err := Named(name); !errors.Is(err, errAttachment) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestPossible(t *testing.T) {
	for name, c := range map[string]struct {
		spec        testbed.Spec
		says        string
		unsupported bool
	}{
		"plain":                       {testbed.Spec{Network: Pod}, "", false},
		"from-node":                   {testbed.Spec{Network: Pod, Conditions: result.Conditions{From: result.FromNode}}, "", false},
		"policies":                    {testbed.Spec{Network: Pod, Conditions: result.Conditions{Policy: result.PolicyKubernetes, PolicyPods: 3}}, "", false},
		"node, policies":              {testbed.Spec{Network: Pod, Conditions: result.Conditions{Policy: result.PolicyKubernetes, From: result.FromNode}}, "with from=node", true},
		"secondary network, policies": {testbed.Spec{Network: "multus:a/b", Conditions: result.Conditions{Policy: result.PolicyKubernetes}}, "over network multus:a/b", true},
		"nothing":                     {testbed.Spec{Network: Pod, Conditions: result.Conditions{Policy: result.None, Service: result.ServicePod}}, "", false},
		"lab":                         {testbed.Spec{Network: "vxlan"}, "vxlan", false},
		"family":                      {testbed.Spec{Network: Pod, Family: "ipv5"}, "ipv4 or ipv6", false},
		"rate":                        {testbed.Spec{Network: Pod, Conditions: result.Conditions{LinkRate: 1000 * unit.BitsPerSecond(1000)}}, "(link.rate=1Mbit/s)", true},
		"several":                     {testbed.Spec{Network: Pod, Conditions: result.Conditions{TSO: result.Off, QoS: result.Guaranteed, RPS: result.On}}, "(offload.tso=off, rps=on, qos=guaranteed)", true},
		"encrypted":                   {testbed.Spec{Network: Host, Conditions: result.Conditions{Encryption: result.WireGuard}}, "(encryption=wireguard)", true},
		"swap-host":                   {testbed.Spec{Network: Host, PodsOutlive: true}, "", false},
		"swap-named":                  {testbed.Spec{Network: Headless, PodsOutlive: true}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := possible(c.spec)
			if c.says == "" && err == nil {
				return
			}
			if err == nil || c.says == "" || !strings.Contains(err.Error(), c.says) || errors.Is(err, testbed.ErrUnsupported) != c.unsupported {
				t.Errorf("got error %v, want one that says %q", err, c.says)
			}
		})
	}
}

// multusStatus is an annotation as the Multus documentation (docs/quickstart.md, "network-status") shows it.
const multusStatus = `[{
    "name": "cbr0",
    "interface": "eth0",
    "ips": ["10.244.1.73"],
    "mac": "76:f8:0a:2f:2f:2e",
    "default": true,
    "dns": {}
},{
    "name": "default/macvlan-conf",
    "interface": "net1",
    "ips": ["192.168.1.205", "fd00::205"],
    "mac": "86:1d:96:ff:55:0d",
    "dns": {}
}]`

func TestSecondary(t *testing.T) {
	for _, c := range []struct {
		name   string
		family result.Family
		want   string
		says   string
	}{
		{"multus:default/macvlan-conf", result.IPv4, "192.168.1.205", ""},
		{"multus:default/macvlan-conf", result.IPv6, "fd00::205", ""},
		{"multus:default/other", result.IPv4, "", "is not attached"},
	} {
		at, err := secondary(multusStatus, c.name, c.family)
		if c.says == "" && (err != nil || at.String() != c.want) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s by %s: got %v, %v", c.name, c.family, at, err)
		}
	}
	if _, err := secondary("", "multus:a/b", result.IPv4); err == nil || !strings.Contains(err.Error(), "does Multus run") {
		t.Errorf("without an annotation: %v", err)
	}
}

func FuzzSecondary(f *testing.F) {
	f.Add(multusStatus, "multus:default/macvlan-conf")
	f.Add(`[{"name":"a/b","ips":["x"]}]`, "multus:a/b")
	f.Add("null", "multus:")
	f.Fuzz(func(t *testing.T, annotation, name string) {
		at, err := secondary(annotation, name, result.IPv4)
		if (err == nil) != (at.IsValid() && at.Is4()) {
			t.Errorf("got %v, %v", at, err)
		}
	})
}
