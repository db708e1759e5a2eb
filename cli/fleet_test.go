package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFleet(t *testing.T) {
	eachUser(t, func(t *testing.T, u *user) {
		before := host(t)
		u.call(t, statusDone, "fleet", "--clients", "4", "--builds", "2", "--duration", "400ms", "--volley", "100ms").
			shows(t, "4 clients against 1 server, tcp-rr, volleys of 100ms on lab", "host (twin)", "2 of 6 builds", "bridge: pods after")
		var r struct {
			Testbed  string
			Networks []struct {
				Network string
				Volleys []struct{ Clients int }
			}
		}
		e := u.call(t, statusDone, "fleet", "--clients", "2", "--networks", "bridge", "--workload", "udp-rr", "--builds", "1", "--duration", "200ms", "--volley", "100ms", "--json")
		if err := json.Unmarshal([]byte(e.stdout), &r); err != nil || r.Testbed != "lab" || len(r.Networks) != 1 || len(r.Networks[0].Volleys) != 2 || r.Networks[0].Volleys[1].Clients != 2 {
			t.Errorf("the document: %v, %+v", err, r)
		}
		untouched(t, before)
	})
}

// What only some verbs can make is refused by the others.
func TestPoliciesElsewhere(t *testing.T) {
	u := rootUser(t)
	u.call(t, statusUsage, "fleet", "--factor", "policy=kubernetes").says(t, "netdelta run or pairs")
	u.call(t, statusUsage, "policies", "--testbed", "lab").says(t, "--testbed kubernetes")
	u.call(t, statusUsage, "policies", "--rules", "0", "--base-image", "x").says(t, "1 to 10000")
}

// What was measured before an interrupt is printed.
func TestFleetInterrupted(t *testing.T) {
	u := rootUser(t)
	before := host(t)
	cmd := u.start(t, "fleet", "--clients", "2", "--networks", "bridge", "--builds", "1", "--duration", "10m", "--volley", "50ms")
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
