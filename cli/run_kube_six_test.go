package cli_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"netdelta/extras/cluster/supervisor"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/kube"
)

// secondaryNetwork is one over the nodes' cards, whose addresses are given out once in the cluster for tests.
const secondaryNetwork = `{"cniVersion": "0.3.1", "name": "run", "type": "macvlan", "master": "eth0", "mode": "bridge",
 "ipam": {"type": "host-local", "dataDir": "/run/cni/addresses", "ranges": [[{"subnet": "10.88.9.0/24"}], [{"subnet": "fd77:88:0:9::/64"}]]}}`

// withSecondary has Multus attach pods until the end of the test, and returns the name of a network in the cluster's namespace.
func withSecondary(t *testing.T, c *kube.Cluster) string {
	t.Helper()
	folder := ownCluster(t)
	is, err := folder.Status()
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "a cluster with addresses of IPv6 (make cluster-up IPV6=yes)", is.IPv6)
	if err := folder.Switch(supervisor.Config{Multus: supervisor.MultusOn}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Switch(supervisor.Config{Multus: is.Multus}); err != nil {
			t.Error(err)
		}
	})
	body := fmt.Sprintf(`{"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "second"}, "spec": {"config": %s}}`, strconv.Quote(secondaryNetwork))
	err = c.API.REST.Post().AbsPath("/apis/k8s.cni.cncf.io/v1/namespaces", c.Namespace, "network-attachment-definitions").
		SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error()
	if err != nil {
		t.Fatal(err)
	}
	return kube.MultusPrefix + c.Namespace + "/second"
}

// A whole run by IPv6, in a secondary network of Multus as well: every way is proved by agents on the nodes, and each goes by the device
// that is its network's.
func TestSixAndSecondaryOnCluster(t *testing.T) {
	c, flags := inNamespace(t)
	second := withSecondary(t, c)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "six.yaml"), fmt.Sprintf(`study: six
testbed: {kind: kubernetes}
baseline: host
networks: [host, pod, clusterip, headless, nodeport, %q]
factors: {family: [ipv6]}
placement: [cross-node]
workloads: [tcp-rr]
design: {burst: 5ms, builds: 1, rounds: 5, time_budget: 5m}
`, second))
	e := finish(t, longCommand(t, dir, append([]string{"run", "six.yaml", "--builds", "1", "--node-agent", "--out", "run"}, flags...)...))
	e.want(t, statusDone).shows(t, "IPv6")
	networks := map[string]bool{}
	for _, trial := range trials(t, filepath.Join(dir, "run")) {
		network, _, _ := strings.Cut(strings.TrimPrefix(trial.Cell, kube.MultusPrefix), "/cross-node")
		networks[network] = true
		p := trial.Path
		if trial.Failed != "" || p == nil || !p.OK || len(p.Weak) > 0 || len(p.Hops) < 2 || !strings.HasSuffix(trial.Cell, "/"+string(result.IPv6)) {
			t.Errorf("%s: failed %q, path %+v", trial.ID(), trial.Failed, p)
			continue
		}
		want := "/eth0"
		if kube.MultusPrefix+network == second {
			want = "/net1"
		}
		for _, h := range []result.PathHop{p.Hops[0], p.Hops[len(p.Hops)-1]} {
			if !strings.HasSuffix(h.Device, want) {
				t.Errorf("%s went by %s, want %s", trial.ID(), h.Device, want)
			}
		}
	}
	if len(networks) != 7 { // the baseline's A/A control is one
		t.Errorf("trials of %v", networks)
	}
}
