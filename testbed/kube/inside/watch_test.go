package inside

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"

	"netdelta/internal/clock"
	"netdelta/testbed"
)

// TestWatch: a watch says that a way is open, when it closes and opens again, and what its clock is.
func TestWatch(t *testing.T) {
	const port = 20973
	answering := func() (stop func()) {
		in, end := io.Pipe()
		ready, told := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- answer(fmt.Sprint(port), in, told) }()
		if _, err := ready.Read(make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		return func() {
			_ = end.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	for _, protocol := range []string{"udp", "tcp"} {
		stop := answering()
		text, err := json.Marshal(Probing{At: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), Protocol: protocol, Every: 2 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		in, end := io.Pipe()
		said, out := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- watch(string(text), in, out) }()
		turns := json.NewDecoder(said)
		next := func() (turn testbed.Turn) {
			t.Helper()
			if err := turns.Decode(&turn); err != nil {
				t.Fatal(err)
			}
			return turn
		}
		if first := next(); !first.Open || first.Before != 0 {
			t.Errorf("%s: it begins with %+v", protocol, first)
		}
		if _, err := io.WriteString(end, "\n"); err != nil {
			t.Fatal(err)
		}
		read := next()
		if now := clock.Now(); read.Received == 0 || read.Answered < read.Received || now < read.Answered {
			t.Errorf("the clock says %+v, and it is %v", read, now)
		}
		stop()
		if protocol == "udp" { // what the pod itself refuses is reached by TCP
			closed := next()
			if closed.Open || closed.Since <= closed.Before || closed.Before < read.Received-time.Second {
				t.Errorf("it closed like %+v", closed)
			}
			stop = answering()
			if opened := next(); !opened.Open || opened.Since <= closed.Since {
				t.Errorf("after %+v it opened like %+v", closed, opened)
			}
			stop()
		}
		_ = end.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", `{"protocol": "sctp", "every_ns": 5}`, `{"protocol": "udp"}`} {
		if err := watch(bad, nil, nil); err == nil {
			t.Errorf("%q is a vigil", bad)
		}
	}
}
