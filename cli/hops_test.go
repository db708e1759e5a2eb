package cli_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
)

// Hops are traced for root; an ordinary user gets fewer, by the sockets' own stamps, and is told so. Nothing is left of either.
func TestHops(t *testing.T) {
	eachUser(t, func(t *testing.T, u *user) {
		before := host(t)
		e := u.call(t, statusDone, "hops", "--network", "vxlan", "--vs", "bridge", "--time", "1s", "--out", "hops.html")
		withheld := strings.Contains(e.stdout, "The hops are not shown") // on a busy machine they seldom add up
		if !withheld {
			e.shows(t, "request: vxlan against bridge", "parts of vxlan", "transport: devices, forwarding and tunnels between the pods")
		}
		if fewer := strings.Contains(e.stderr, "the sockets' own time stamps take their place"); fewer != u.rootless {
			t.Errorf("fewer hops: %v; it says %q", fewer, e.stderr)
		}
		switch {
		case withheld:
			e.shows(t, "transactions in")
		case u.rootless:
			e.shows(t, "from the first device to the last")
		default:
			e.shows(t, "node0: encapsulation", "node1: decapsulation", "underlay, node0 eth0 to node1 eth0", "events of")
		}
		if page, err := os.ReadFile(filepath.Join(u.dir, "hops.html")); err != nil || strings.Contains(string(page), `<svg class="lanes"`) == withheld {
			t.Errorf("the picture, where hops are withheld: %v: %v", withheld, err)
		}
		var ways []struct {
			Network string
			Request []struct {
				P50 float64 `json:"p50_ns"`
			}
		}
		e = u.call(t, statusDone, "hops", "--network", "bridge", "--placement", "same-node", "--workload", "udp-rr", "--time", "1s", "--json")
		if err := json.Unmarshal([]byte(e.stdout), &ways); err != nil || len(ways) != 1 || ways[0].Network != "bridge" || len(ways[0].Request) < 3 {
			t.Errorf("the document: %v, %+v", err, ways)
		}
		u.call(t, statusUsage, "hops", "--network", "vlxan")
		u.call(t, statusUsage, "hops", "--pid", "1")
		untouched(t, before)
	})
}

// A run's report has the hops of its networks, and keeps them when it is written anew.
func TestRunWithHops(t *testing.T) {
	require.Long(t)
	u := rootUser(t)
	before := host(t)
	u.call(t, statusDone, "run", "small.yaml", "--networks", "host,bridge", "--builds", "1", "--rounds", "3", "--explain-outliers", "--flame", "--out", "traced")
	for _, name := range []string{"hops.json", "flame/host.html", "flame/bridge.pb.gz", "flame/bridge.folded"} {
		if info, err := os.Stat(filepath.Join(u.dir, "traced", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	u.call(t, statusDone, "report", "traced", "--out", "again.html")
	for _, name := range []string{"traced/report.html", "again.html"} {
		page, err := os.ReadFile(filepath.Join(u.dir, name))
		if err != nil || !strings.Contains(string(page), "Where the time goes") || !strings.Contains(string(page), "the slowest of bridge") {
			t.Errorf("%s has no hops: %v", name, err)
		}
	}
	untouched(t, before)
}

// freePort is a port of loopback on which nothing listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// A running program's connections are watched, and go on.
func TestHopsOfAProgram(t *testing.T) {
	u := rootUser(t)
	port := strconv.Itoa(freePort(t))
	iperf := require.Tool(t, "iperf3")
	server := exec.CommandContext(t.Context(), iperf, "-s", "-1", "-B", "127.0.0.1", "-p", port)
	client := exec.CommandContext(t.Context(), iperf, "-c", "127.0.0.1", "-p", port, "-t", "60", "-b", "20M", "-l", "1K")
	for _, cmd := range []*exec.Cmd{server, client} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		time.Sleep(time.Second) // the server listens, the client has connected
	}
	u.call(t, statusDone, "hops", "--pid", strconv.Itoa(client.Process.Pid), "--port", port, "--time", "1s").
		shows(t, "to the server at port "+port, "host lo")
	u.call(t, statusNothing, "hops", "--pid", strconv.Itoa(os.Getpid()), "--port", "9", "--time", "100ms")
	u.call(t, statusUsage, "hops", "--pid", "4194304", "--port", port)
}

// A profile is written in all forms; who may not take one is told before anything is built.
func TestFlame(t *testing.T) {
	eachUser(t, func(t *testing.T, u *user) {
		if u.rootless {
			u.call(t, statusFailed, "flame", "--network", "bridge")
			return
		}
		before := host(t)
		shown := u.call(t, statusDone, "flame", "--network", "udp-tun", "--vs", "bridge", "--workload", "tcp-stream", "--time", "3s", "--out", "profiles").
			shows(t, "Processor time for each GB", "ticks of").stdout
		// On a busy machine there may be too few ticks for any function: then that is said.
		if !strings.Contains(shown, "difference") && !strings.Contains(shown, "No single function differs by more than chance") {
			t.Errorf("the profiles are not held against each other:\n%s", shown)
		}
		for _, name := range []string{"flame.html", "udp-tun.pb.gz", "bridge.folded"} {
			if info, err := os.Stat(filepath.Join(u.dir, "profiles", name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
		folded, err := os.ReadFile(filepath.Join(u.dir, "profiles", "udp-tun.folded"))
		// Most ticks of a tunnel's program are of what it writes, and a node has more ticks than a pod.
		if err != nil || !strings.Contains(string(folded), "tun_get_user") || !strings.Contains(string(folded), "node0;") {
			t.Errorf("the profile of udp-tun has none of its functions: %v", err)
		}
		untouched(t, before)
	})
}
