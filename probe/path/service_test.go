package path_test

import (
	"net/netip"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// A way is proved also where the client calls a virtual address and where pods are guarded.
func TestServicesProve(t *testing.T) {
	t.Parallel()
	for _, c := range []result.Conditions{
		{Service: result.ServiceIPTables}, {Service: result.ServiceNFTables}, {Service: result.ServiceIPVS}, {Service: result.ServiceEBPF},
		{Service: result.ServiceNFTables, Policy: result.PolicyIPTables},
	} {
		t.Run(c.Service+"-"+c.Policy, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"host", "bridge-nat", "vxlan", "vxlan-routed"} {
				if name == "host" && c.Service == result.ServiceEBPF {
					continue // its pods have no device of their own
				}
				for _, family := range []result.Family{result.IPv4, result.IPv6} {
					t.Run(name+"-"+string(family), func(t *testing.T) {
						t.Parallel()
						o := open(t, named(t, name), testbed.Spec{Family: family, Conditions: c.Plain()})
						for _, to := range []int{1, 2} {
							proves(t, o, to)
						}
					})
				}
			}
		})
	}
}

// A packet that still has the virtual address on its way is a finding.
func TestUntranslated(t *testing.T) {
	const port = 20000
	at, pod := netip.MustParseAddr("198.18.128.9"), network.Device{In: network.InPod(0), Name: "eth0"}
	way := []network.Hop{{Device: pod, Role: network.RolePod, Sends: true}}
	o := path.Observation{
		Request: way, Response: way, PathMTU: 1500, Encapsulation: "none", Virtual: at,
		Servers: []netip.Addr{netip.MustParseAddr("198.19.1.10")},
		Load:    path.Load{Protocol: network.UDP, Server: netip.AddrPortFrom(at, port), Requests: 8, Message: 8},
	}
	for _, to := range append(o.Servers, at) {
		head := ethernet(ipPacket(17, netip.MustParseAddr("198.19.0.10"), to, udp(4000, port, make([]byte, 8))))
		o.Sample.Packets = []testbed.Packet{{Device: pod, Outgoing: true, Length: unit.Bytes(len(head)), Head: head}}
		findings := strings.Join(path.Judge(o).Findings, "\n")
		if found := strings.Contains(findings, "1 packets to the virtual address 198.18.128.9"); found != (to == at) {
			t.Errorf("a packet to %s: findings %q", to, findings)
		}
	}
}
