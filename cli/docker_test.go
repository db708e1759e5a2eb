package cli_test

import (
	"math"
	"testing"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/docker"
	"netdelta/testbed/docker/dockertest"
)

// Networks of a container engine stand in one run with a lab's: each path is proved, and what must cost much does.
func TestRunOnDocker(t *testing.T) {
	require.Long(t)
	dir := labFolder(t)
	dockertest.Start(t)
	before := host(t)
	call(t, dir, statusDone, "doctor", "--testbed", "docker").shows(t, "ok network docker:bridge", "ok network docker:published-proxy")
	ran := call(t, dir, statusDone, "run", "small.yaml", "--builds", "2", "--testbed", "docker", "--networks", "docker:host,docker:bridge,docker:published,docker:published-proxy,bridge",
		"--baseline", docker.Host, "--workloads", "tcp-rr,udp-rr", "--factor", "message=2KiB", "--out", "run", "--json")
	untouched(t, before)
	run := decode(t, ran.stdout)
	if run.Testbed != docker.Kind {
		t.Errorf("the testbed is %q", run.Testbed)
	}
	for _, trial := range trials(t, dir+"/run") {
		if trial.Failed != "" || trial.Path == nil || !trial.Path.OK {
			t.Errorf("the path of %s is not proved: %s %+v", trial.Cell, trial.Failed, trial.Path)
		}
	}
	headline := map[string]result.Delta{}
	for _, d := range run.Deltas {
		if d.Headline && d.Workload == "tcp-rr" {
			headline[d.Network] = d
		}
	}
	for _, name := range []string{docker.Bridge, docker.Published, docker.Proxied, "bridge"} {
		if d, measured := headline[name]; !measured || d.Blocks == 0 {
			t.Errorf("network %s has no delta: %+v", name, d)
		}
	}
	// A proxy takes each message over two more sockets.
	if direct, proxied := headline[docker.Published], headline[docker.Proxied]; proxied.Ratio < 1.3*direct.Ratio {
		t.Errorf("a proxy costs %.2f, and the firewall alone %.2f", proxied.Ratio, direct.Ratio)
	}
	call(t, dir, statusUsage, "run", "--testbed", "docker", "--placement", "cross-node").says(t, "cross-node")
	call(t, dir, statusUsage, "run", "--docker", "podman").says(t, "--docker", "--testbed docker")
	call(t, dir, statusUsage, "run", "small.yaml", "--testbed", "docker", "--networks", "docker:host,docker:bridg", "--baseline", docker.Host).says(t, `"docker:bridg"`, `"docker:bridge"`)
}

// What stands for Docker's default bridge costs what that does, from container to container and from the host to a published port: added times
// are within 15% of each other, in one run against one baseline.
func TestStandInForDockerWhenQuiet(t *testing.T) {
	require.Long(t)
	require.Quiet(t)
	dir := labFolder(t)
	dockertest.Start(t)
	ran := call(t, dir, statusDone, "run", "latency", "--testbed", "docker", "--networks", "host,bridge-nat,docker:bridge,docker:published", "--baseline", "host",
		"--workloads", "tcp-rr,udp-rr", "--placement", "same-node", "--factor", "message=300", "--factor", "regime=saturated", "--factor", "from=pod,node",
		"--time-budget", "60s", "--out", "run", "--json")
	type cell struct{ workload, network, from string }
	added := map[cell]float64{}
	for _, d := range decode(t, ran.stdout).Deltas {
		if d.Headline {
			added[cell{d.Workload, d.Network, d.Params.Conditions.From}] = d.Difference
		}
	}
	const within = 0.15
	for _, workload := range []string{"tcp-rr", "udp-rr"} {
		for product, stand := range map[cell]cell{
			{workload, docker.Bridge, ""}:    {workload, "bridge-nat", ""},
			{workload, docker.Published, ""}: {workload, "bridge-nat", result.FromNode},
		} {
			t.Logf("%s: %s adds %.0f ns, the lab's %.0f ns", workload, product.network, added[product], added[stand])
			if off := added[stand]/added[product] - 1; !(math.Abs(off) <= within) {
				t.Errorf("%s: %s adds %.0f ns, and what stands for it %.0f ns: %+.0f%%", workload, product.network, added[product], added[stand], 100*off)
			}
		}
	}
}
