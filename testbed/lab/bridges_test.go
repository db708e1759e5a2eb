package lab_test

import (
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// A bridge hands its packets to the firewall where the condition says so, and else as the systems do that the network stands for: a firewall
// that drops all that is forwarded tells. The record says the same.
func TestBridgeNetfilterOnEachKernel(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	if err := shared().Has(network.NeedBridgeNetfilter); err != nil {
		require.Need(t, err.Error(), false)
	}
	for _, c := range []struct {
		network string
		asked   result.Switch
		want    result.Switch
	}{
		{"bridge", "", result.Off}, {"bridge", result.On, result.On}, {"vxlan-routed", "", result.On}, {"vxlan-routed", result.Off, result.Off},
	} {
		t.Run(c.network+"/"+string(c.asked), func(t *testing.T) {
			t.Parallel()
			for _, family := range []result.Family{result.IPv4, result.IPv6} {
				guarded := named(t, c.network)
				build := guarded.Build
				guarded.Build = func(top network.Topology) network.Plan {
					p := build(top)
					p.Ops = append(p.Ops, network.Rules{In: network.InNode(0), Family: family, Table: "wall", Chains: []network.Chain{
						{Name: "none", Hook: network.Forwarding, Drop: true},
					}})
					return p
				}
				tb, err := lab.NewDriver([]network.Network{guarded}).Open(t.Context(), testbed.Spec{
					Nodes: 1, PodsPerNode: 2, Network: c.network, Family: family, Conditions: result.Conditions{BridgeNetfilter: c.asked},
				})
				require.NoError(t, err)
				client, server := across(t, tb, "udp")
				port, _ := server.Pod.Ports()
				_, err = client.Exchange("udp", tb.Endpoint(client.Pod, server.Pod, port), 100, 1)
				if filtered := err != nil; filtered != (c.want == result.On) {
					t.Errorf("%s: the firewall sees packets of the bridge: %v (%v)", family, filtered, err)
				}
				links, err := tb.Links(t.Context())
				require.NoError(t, err)
				bridges := 0
				for _, l := range links {
					if l.Kind == "bridge" && l.Where == "node0" {
						bridges++
						if l.Netfilter != c.want {
							t.Errorf("%s: the record of %s says %q, want %q", family, l.Name, l.Netfilter, c.want)
						}
					} else if l.Netfilter != "" {
						t.Errorf("%s: the record of %s/%s says %q", family, l.Where, l.Name, l.Netfilter)
					}
				}
				if bridges != 1 {
					t.Errorf("%d bridges of the node", bridges)
				}
				require.NoError(t, tb.Close())
			}
		})
	}
}

// named is a network of the catalogue.
func named(t *testing.T, name string) network.Network {
	t.Helper()
	n, err := network.Find(network.Catalogue(), name)
	require.NoError(t, err)
	return n
}
