package cli_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// A lab's networks on the nodes of a cluster are measured with the cluster's own, each on its way, and what the pods on nodes may do is said
// before.
func TestWhatIfOnCluster(t *testing.T) {
	t.Parallel()
	_, flags := inNamespace(t)
	dir := t.TempDir()
	e := finish(t, longCommand(t, dir, append([]string{
		"run", "latency", "--what-if", "--networks", "metal,pod,flannel-host-gw,bridge", "--workloads", "tcp-rr", "--factor", "message=300", "--placement", "cross-node",
		"--builds", "1", "--rounds", "5", "--time-budget", "5m", "--out", "run",
	}, flags...)...))
	e.want(t, statusDone).says(t, "a privileged pod in the network namespace of each of the nodes w1, w2").shows(t, "metal", "pod", "routed", "nodes that share a link")
	run, err := result.Load(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	var networks []string
	for _, tr := range trials(t, filepath.Join(dir, "run")) {
		if tr.Failed != "" || tr.Path == nil || !tr.Path.OK {
			t.Errorf("%s: failed %q, path %+v", tr.ID(), tr.Failed, tr.Path)
		}
		wantServerTime(t, tr)
		networks = append(networks, strings.SplitN(tr.Cell, "/", 2)[0])
	}
	if slices.Sort(networks); !slices.Equal(networks, []string{"metal", "metal+twin", "pod", "routed"}) {
		t.Errorf("the networks of trials are %v", networks)
	}
	for _, check := range run.Checks {
		if !check.OK && check.Check == insight.CheckPath {
			t.Errorf("%+v", check)
		}
	}
	about := run.Environment
	if about.Cluster == nil || len(about.Cluster.Nodes) != 2 || len(about.Servers) != 2 || about.Servers[0].Name != "w1" || about.Servers[1].Mode != "macvlan" || run.Testbed != "what-if" {
		t.Errorf("testbed %s, cluster %+v, servers %+v", run.Testbed, about.Cluster, about.Servers)
	}
}
