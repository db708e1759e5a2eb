package evidence

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"netdelta/internal/netns"
	"netdelta/internal/require"
)

// What a namespace counts is read inside it: datagrams to a closed port, and what a shaper holds back.
func TestCountersOfANamespace(t *testing.T) {
	require.Namespaces(t)
	space, err := netns.New(nil)
	require.NoError(t, err)
	defer require.Closes(t, space)
	const sent = 20
	var before, after Counters
	require.NoError(t, space.Do(func() error {
		const set = "ip link set lo up; tc qdisc add dev lo root tbf rate 1mbit burst 1600 limit 2000"
		if out, err := exec.Command("sh", "-ec", set).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", set, err, out)
		}
		if before, err = ReadCounters(); err != nil {
			return err
		}
		to, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			return err
		}
		for range sent {
			_, _ = to.Write(make([]byte, 1000)) // the answers of ICMP come as errors
		}
		if after, err = ReadCounters(); err != nil {
			return err
		}
		return to.Close()
	}))
	since := after.Since(before)
	if since["Udp.OutDatagrams"] == 0 || since["lo tbf drops"] == 0 || since["lo tx_packets"] == 0 {
		t.Errorf("counted were %v", since)
	}
	if since["Tcp.RetransSegs"] != 0 {
		t.Error("what did not change is counted")
	}
}

func FuzzCounters(f *testing.F) {
	f.Add("Tcp: A B\nTcp: 1 2\n")
	f.Add("Inter-| Receive\n lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")
	f.Add("entries drop\n00000001 0000000a\n")
	f.Add("Udp6RcvbufErrors 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(Counters, []byte) error{parseTable, parseSNMP6, parseDevices, parseSoftnet, perProcessor("conntrack")} {
			c := Counters{}
			if err := parse(c, []byte(text)); err == nil {
				for name := range c {
					if strings.TrimSpace(name) == "" {
						t.Errorf("a counter without a name from %q", text)
					}
				}
			}
		}
	})
}
