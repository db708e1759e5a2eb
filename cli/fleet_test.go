package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/result"
)

func TestFleet(t *testing.T) {
	eachUser(t, func(t *testing.T, u *user) {
		before := host(t)
		u.call(t, statusDone, "fleet", "--clients", "4", "--networks", "host,bridge", "--builds", "2", "--duration", "200ms", "--burst", "50ms").
			shows(t, "4 clients against 1 server, tcp-rr, bursts of 50ms on lab", "host (A/A control)", "2 of 3 builds", "bridge: pods after")
		if u.rootless { // what is kept, and printed of it, is alike for all users (TestRootlessRun)
			untouched(t, before)
			return
		}
		u.call(t, statusDone, "show", "runs/latest").shows(t, "4 clients against 1 server, tcp-rr, bursts of 50ms on lab", "host (A/A control)", "2 of 3 builds", "bridge: pods after")
		u.call(t, statusDone, "fleet", "--resume", "runs/latest", "--builds", "3", "--duration", "300ms").says(t, "build 3 of 3").shows(t, "unresolved")
		var r struct {
			Testbed  string
			Networks []struct {
				Network string
				Bursts  []struct{ Clients int } `json:"bursts"`
			}
		}
		e := u.call(t, statusDone, "fleet", "--clients", "2", "--networks", "bridge", "--workload", "udp-rr", "--builds", "1", "--duration", "200ms", "--burst", "100ms", "--json")
		if err := json.Unmarshal([]byte(e.stdout), &r); err != nil || r.Testbed != "lab" || len(r.Networks) != 1 || len(r.Networks[0].Bursts) != 2 || r.Networks[0].Bursts[1].Clients != 2 {
			t.Errorf("the document: %v, %+v", err, r)
		}
		untouched(t, before)
	})
}

// What only some verbs can make is refused by the others.
func TestPoliciesElsewhere(t *testing.T) {
	u := rootUser(t)
	u.call(t, statusUsage, "fleet", "--factor", "policy=kubernetes").says(t, "netdelta run", "pairs")
	u.call(t, statusUsage, "policies", "--testbed", "lab").says(t, "--testbed kubernetes")
	u.call(t, statusUsage, "policies", "--rules", "0", "--base-image", "x").says(t, "1 to 10000")
}

// What was measured before an interrupt is printed.
func TestFleetInterrupted(t *testing.T) {
	u := rootUser(t)
	before := host(t)
	cmd := u.start(t, "fleet", "--clients", "2", "--networks", "bridge", "--builds", "1", "--duration", "10m", "--burst", "50ms")
	time.Sleep(3 * time.Second)
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	await(t, cmd).want(t, statusInterrupted)
	untouched(t, before)
}

func TestPairs(t *testing.T) {
	eachUser(t, func(t *testing.T, u *user) {
		before := host(t)
		u.call(t, statusDone, "pairs", "--builds", "2", "--rounds", "2", "--out", "pairs.html").
			shows(t, "tcp-rr p50 in network bridge", "node0", "node2", "too few builds to call a node odd")
		if page, err := os.ReadFile(filepath.Join(u.dir, "pairs.html")); err != nil || !strings.Contains(string(page), `class="map"`) {
			t.Errorf("the heat map: %v", err)
		}
		if u.rootless { // what is kept, and printed of it, is alike for all users (TestRootlessRun)
			untouched(t, before)
			return
		}
		keepsPairs(t, u)
		var r struct {
			Judged []struct{ Pairs []struct{ Value float64 } }
		}
		e := u.call(t, statusDone, "pairs", "--size", "2", "--workload", "tcp-stream", "--builds", "1", "--rounds", "1", "--json")
		if err := json.Unmarshal([]byte(e.stdout), &r); err != nil || len(r.Judged) != 1 || len(r.Judged[0].Pairs) != 2 || r.Judged[0].Pairs[0].Value <= 0 {
			t.Errorf("the document: %v, %+v", err, r)
		}
		untouched(t, before)
	})
}

// keepsPairs checks that pairs leave a run folder that can be shown, reported, compared and resumed, with claims that are judged.
func keepsPairs(t *testing.T, u *user) {
	t.Helper()
	study := "study: nodes\nstrategy: pairs\noptions: {networks: [host, bridge], builds: 2, rounds: 2}\n" +
		"claims:\n  - {id: cost, says: bridges cost more, expect: p50 of bridge above host}\n"
	write(t, filepath.Join(u.dir, "nodes.yaml"), study)
	for _, name := range []string{"first", "second"} {
		u.call(t, statusDone, "pairs", "nodes.yaml", "--out", name).shows(t, "in network bridge, from each node", "claims").says(t, "run folder: "+name)
	}
	u.call(t, statusDone, "pairs", "--resume", "first", "--builds", "3").says(t, "build 3 of 3")
	run, err := result.Load(filepath.Join(u.dir, "first"))
	if err != nil {
		t.Fatal(err)
	}
	trials := trials(t, filepath.Join(u.dir, "first"))
	if run.Strategy == nil || run.Strategy.Name != result.StrategyPairs || len(trials) != 6 || len(run.Deltas) == 0 || len(run.Claims) != 1 {
		t.Errorf("the record: %+v, %d trials, %d deltas, claims %v", run.Strategy, len(trials), len(run.Deltas), run.Claims)
	}
	for _, tr := range trials {
		if len(tr.Pairs) != 6 || len(tr.Bursts.Round) != 12 || tr.Build > 2 {
			t.Errorf("%s has %d pairs and %d bursts", tr.ID(), len(tr.Pairs), len(tr.Bursts.Round))
		}
	}
	u.call(t, statusDone, "show", "first", "-v").shows(t, "in network bridge, from each node", "bridges cost more")
	u.call(t, statusDone, "report", "first", "--format", "csv").shows(t, "bridge")
	if page, err := os.ReadFile(filepath.Join(u.dir, "first", "report.html")); err != nil || !strings.Contains(string(page), `class="map"`) {
		t.Errorf("the page has no heat map: %v", err)
	}
	u.call(t, statusNothing, "compare", "first", "second").shows(t, "bridge")
	u.call(t, statusUsage, "run", "--resume", "first").says(t, "netdelta pairs --resume")
}
