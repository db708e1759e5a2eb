package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"netdelta/experiment/policies"
	insight "netdelta/insight/policies"
	"netdelta/internal/require"
	"netdelta/result"
)

// policed has the cluster of make cluster-up enforce policies until the test ends. Another may have an engine of its own.
func policed(t *testing.T) {
	t.Helper()
	require.Cluster(t)
	change := func(engine string) error {
		out, err := exec.CommandContext(t.Context(), "go", "run", "netdelta/extras/cluster", "switch", "--policy", engine).CombinedOutput()
		if err != nil {
			t.Logf("%v: %s", err, out)
		}
		return err
	}
	if change("kube-network-policies") == nil {
		t.Cleanup(func() {
			out, err := exec.Command("go", "run", "netdelta/extras/cluster", "switch", "--policy", "none").CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// Policies have an effect that is measured, and take a time to come into effect that is measured.
func TestPoliciesOnCluster(t *testing.T) {
	t.Parallel() // no other test has policies
	policed(t)
	_, flags := inNamespace(t)

	changes := []policies.Change{policies.Refused, policies.Passing}
	call := append([]string{"policies", "--rules", "1,5", "--repeat", "2", "--every", "10ms", "--json"}, flags...)
	if os.Getenv(readyImage) != "" { // fresh pods have the program in their image
		call, changes = append(call, "--fresh"), policies.Changes()
	}
	e := onCluster(t, statusDone, call...)
	var r insight.Report
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Latencies) != 2*len(changes) || len(r.Failures) > 0 {
		t.Errorf("%d latencies, failures %+v", len(r.Latencies), r.Failures)
	}
	for i, l := range r.Latencies {
		want := changes[i%len(changes)]
		t.Logf("%d policies, %s: %v, at most %v; %d packets slipped through", l.Policies, l.Change, l.Median, l.Max, l.Slipped)
		if l.Change != want || l.Samples != 2 || l.Median < -l.ClockError || l.Max < l.Median || l.Resolution <= 0 && !policies.Fresh(l.Change) {
			t.Errorf("latency %d is %+v", i, l)
		}
	}

	dir := t.TempDir()
	write(t, filepath.Join(dir, "policies.yaml"), `study: policies
testbed: {kind: kubernetes}
baseline: pod
networks: [pod]
placement: [cross-node]
factors: {policy: [none, kubernetes], policy.rules: [3]}
workloads: [tcp-rr]
design: {burst: 5ms, builds: 2, rounds: 5, time_budget: 5m}
`)
	finish(t, longCommand(t, dir, append([]string{"run", "policies.yaml", "--factor", "message=300", "--builds", "2", "--out", "run"}, flags...)...)).want(t, statusDone).
		shows(t, "kubernetes:3")
	run, err := result.Load(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(run.Effects, func(e result.Effect) bool { return e.Headline })
	if at < 0 || run.Effects[at].Factor != "policy" || run.Effects[at].To != "kubernetes:3" || run.Effects[at].Ratio <= 0 {
		t.Errorf("the effects are %+v", run.Effects)
	}
}
