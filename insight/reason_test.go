package insight_test

import (
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
)

// Where differences between the ways to a cluster's pods arise is said by direct comparisons, and nothing of what is not resolved.
func TestReasons(t *testing.T) {
	contrast := func(one, other string, low, ratio, high float64, cheaper string) result.Contrast {
		return result.Contrast{Cell: one, Other: other, Ratio: ratio, RatioLow: &low, RatioHigh: &high, Cheaper: cheaper}
	}
	on := func(contrasts ...result.Contrast) result.Run {
		run := runOf(measured("pod", "slower", 70, 75, 80), measured("nodeport", "slower", 40, 42, 44), measured("clusterip", "slower", 70, 75, 80))
		run.Contrasts, run.Environment.Cluster = contrasts, &result.Cluster{Product: "flannel", Proxy: "nftables"}
		return run
	}
	quick, slow := contrast("nodeport", "pod", 0.80, 0.81, 0.82, "nodeport"), contrast("pod", "nodeport", 1.22, 1.23, 1.25, "nodeport")
	alike := contrast("pod", "clusterip", 0.995, 1.001, 1.008, "")
	wrapped := on(quick)
	wrapped.Environment.Cluster.Product = ""
	wrapped.Paths = []result.PathProof{{Network: "pod", Placement: result.CrossNode, Seen: &result.Path{Encapsulation: "geneve"}}}
	direct := on(quick)
	direct.Environment.Cluster.Product = "flannel-host-gw"
	fromPod := on()
	fromPod.Deltas, fromPod.Contrasts = nil, nil
	for _, c := range []struct{ network, verdict string }{{"nodeport", "faster"}, {"clusterip", "same"}} {
		d := measured(c.network, c.verdict, -1, 0, 1)
		if c.verdict == "faster" {
			d = measured(c.network, c.verdict, -21, -19, -18)
		}
		d.Baseline = "pod"
		fromPod.Deltas = append(fromPod.Deltas, d)
	}
	lab := on(quick, alike)
	lab.Environment.Cluster = nil
	const pods = "What pod adds to host is in the devices and rules that lead packets into pods and, between the nodes, vxlan."
	for name, c := range map[string]struct {
		run  result.Run
		want string
	}{
		"tunnel and services": {on(quick, alike), pods + " nodeport is -19% against pod: it goes to the node's own address, and so skips the tunnel (vxlan). " +
			"clusterip is as pod: what leads to services, kube-proxy with nftables, adds nothing that shows."},
		"the other way round": {on(slow), pods + " nodeport is -19% against pod: it goes to the node's own address, and so skips the tunnel (vxlan)."},
		"services cost":       {on(contrast("clusterip", "pod", 1.05, 1.06, 1.07, "pod")), pods + " clusterip is +6.0% against pod: that is what leads to services, kube-proxy with nftables."},
		"unresolved":          {on(contrast("clusterip", "pod", 0.95, 1.01, 1.07, "")), pods},
		"as seen":             {wrapped, strings.Replace(pods, "vxlan", "geneve", 1) + " nodeport is -19% against pod: it goes to the node's own address, and so skips the tunnel (geneve)."},
		"no tunnel":           {direct, "What pod adds to host is in the devices and rules that lead packets into pods."},
		"against pod":         {fromPod, "nodeport is -19% against pod: it goes to the node's own address, and so skips the tunnel (vxlan). clusterip is as pod: what leads to services, kube-proxy with nftables, adds nothing that shows."},
		"a lab":               {lab, ""},
	} {
		if got := words.Reasons(insight.Reasons(c.run, insight.Parts(c.run)[0])); got != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, c.want)
		}
	}
}
