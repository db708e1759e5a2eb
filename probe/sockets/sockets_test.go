package sockets

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	os.Exit(leak.Main(m))
}

func TestJoin(t *testing.T) {
	info := &result.TCPInfo{MSS: 1448}
	for _, c := range []struct {
		name           string
		client, server engine.Totals
		want           *result.Sockets
	}{
		{"nothing is known", engine.Totals{}, engine.Totals{}, nil},
		{
			"both ends",
			engine.Totals{TCP: info, Sockets: &result.Sockets{Dropped: 1, SendBuffer: 2, ReceiveBuffer: 3}},
			engine.Totals{TCP: info, Sockets: &result.Sockets{Dropped: 10, Overflows: 20, SendBuffer: 99}},
			&result.Sockets{Dropped: 11, Overflows: 20, SendBuffer: 2, ReceiveBuffer: 3, Server: info},
		},
		{"the server alone", engine.Totals{}, engine.Totals{Sockets: &result.Sockets{Overflows: 4}}, &result.Sockets{Overflows: 4}},
		{"the client alone", engine.Totals{Sockets: &result.Sockets{Dropped: 4}}, engine.Totals{}, &result.Sockets{Dropped: 4}},
		{"the server's connection alone", engine.Totals{}, engine.Totals{TCP: info}, &result.Sockets{Server: info}},
	} {
		before := c.client.Sockets
		if before != nil {
			copied := *before
			before = &copied
		}
		if diff := cmp.Diff(c.want, Join(c.client, c.server)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if diff := cmp.Diff(before, c.client.Sockets); diff != "" {
			t.Errorf("%s: the client's totals were changed: %s", c.name, diff)
		}
	}
}

func TestFindings(t *testing.T) {
	cubic, reno := &result.TCPInfo{CongestionControl: "cubic", MSS: 1448}, &result.TCPInfo{CongestionControl: "reno", MSS: 1398}
	for _, c := range []struct {
		name string
		t    result.Trial
		want []string
	}{
		{"nothing is known", result.Trial{TCP: cubic}, nil},
		{"all is well", result.Trial{TCP: cubic, Sockets: &result.Sockets{Server: cubic}}, nil},
		{"segments as large as windows", result.Trial{TCP: &result.TCPInfo{MSS: 65483}, Sockets: &result.Sockets{Server: &result.TCPInfo{MSS: 32741}}}, nil},
		{"drops", result.Trial{Sockets: &result.Sockets{Dropped: 7, ReceiveBuffer: 4 << 20}}, []string{"turned away 7 datagrams"}},
		{"overflows", result.Trial{Sockets: &result.Sockets{Overflows: 9}}, []string{"turned away 9 connections"}},
		{
			"two ends that differ", result.Trial{TCP: cubic, Sockets: &result.Sockets{Server: reno}},
			[]string{"is cubic, the server's reno", "MTU is not the same"},
		},
	} {
		got := Findings(c.t)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", c.name, got)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(got[i], want) || strings.HasSuffix(got[i], ".") {
				t.Errorf("%s: %q, want one with %q", c.name, got[i], want)
			}
		}
	}
}

// TestSlowReceiver stops the server's process, while a stream comes in, until its buffer can't hold more: what comes then is lost there, and
// not on the way.
func TestSlowReceiver(t *testing.T) {
	require.Namespaces(t)
	const name = "udp-stream"
	client, server := probetest.Agents(t)
	w := workload.Find(catalogue.Workloads(), name)
	p := w.Defaults
	p.Message, p.Rate = 1400, 500*unit.Mbit
	from, to := client.Pod(), server.Pod()
	first, _ := to.Ports()
	service, err := server.Serve(t.Context(), name, p, netip.AddrPortFrom(to.Address(), first), -1)
	if err != nil {
		t.Fatal(err)
	}
	session, err := client.Dial(t.Context(), name, p, netip.AddrPortFrom(from.Address(), 3000), netip.AddrPortFrom(to.Address(), first), -1)
	if err != nil {
		t.Fatal(err)
	}
	// The warm-up is not counted by the receiver, but may be dropped by its socket: so there is none.
	spec := engine.BurstSpec{Duration: time.Second, Deadline: 20 * time.Second}
	if err := unix.Kill(server.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	go func() {
		err := require.Await(spec.Deadline/2, "the server's socket drops datagrams", func() error {
			if drops(server.PID()) == 0 && t.Context().Err() == nil {
				return errors.New("it has dropped none")
			}
			return nil
		})
		if t.Context().Err() != nil {
			return // the server is being ended
		}
		if err != nil {
			t.Error(err)
		}
		_ = unix.Kill(server.PID(), unix.SIGCONT)
	}()
	b, err := client.Burst(t.Context(), session, spec)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := client.Collect(t.Context(), session, false)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := server.Totals(t.Context(), service)
	if err != nil {
		t.Fatal(err)
	}
	s := Join(mine, theirs)
	// The question for the report is repeated until it is answered, and is dropped like the rest.
	if b.Lost == 0 || int64(s.Dropped) < b.Lost || int64(s.Dropped) > b.Lost+100 {
		t.Errorf("%d of %d datagrams lost, the socket dropped %d", b.Lost, b.Sent, s.Dropped)
	}
	if found := Findings(result.Trial{Sockets: s}); len(found) != 1 {
		t.Errorf("findings: %q", found)
	}
	// With the receiver awake nothing more is dropped.
	before := theirs.Sockets.Dropped
	if b, err = client.Burst(t.Context(), session, engine.BurstSpec{Duration: 20 * time.Millisecond, Deadline: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if theirs, err = server.Totals(t.Context(), service); err != nil || theirs.Sockets.Dropped-before != uint64(b.Lost) {
		t.Errorf("%d lost, the socket dropped %d more: %v", b.Lost, theirs.Sockets.Dropped-before, err)
	}
}

// drops counts the datagrams that the UDP sockets of a process's namespace have turned away: the last column of its table.
func drops(pid int) int {
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", pid))
	if err != nil {
		return 0
	}
	sum := 0
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		n, _ := strconv.Atoi(fields[len(fields)-1]) // the first line holds names
		sum += n
	}
	return sum
}
