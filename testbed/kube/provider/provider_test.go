package provider

import (
	"testing"

	"netdelta/testbed/kube/survey"
)

// TestPluginWords: the head of a run says no more of a cluster's network than the survey is sure of.
func TestPluginWords(t *testing.T) {
	for want, n := range map[string]survey.Network{
		"":        {},
		"flannel": {Plugin: "flannel", Encryption: "none"},
		"calico (VXLAN CrossSubnet, encapsulated in vxlan between subnets only)": {Plugin: "calico", Mode: "VXLAN CrossSubnet", Encapsulation: "vxlan", OnlyAcross: true},
		"probably bridge (routes)":                                {Plugin: "bridge", Mode: "routes", Encapsulation: "none", Doubt: "nothing tells of another"},
		"flannel (vxlan, encrypted by wireguard, pods' MTU 1420)": {Plugin: "flannel", Mode: "vxlan", Encapsulation: "vxlan", Encryption: "wireguard", MTU: 1420},
	} {
		if got := pluginWords(n); got != want {
			t.Errorf("%+v: got %q, want %q", n, got, want)
		}
	}
}
