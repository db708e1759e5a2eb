package servers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"testing"

	"netdelta/internal/tail"
	"netdelta/testbed/servers/server"
)

// spoken is a link over which something was said.
type spoken struct {
	Link
	io.Reader
}

// Read implements io.Reader.
func (s spoken) Read(b []byte) (int, error) { return s.Reader.Read(b) }

// named is a machine of which only the name is needed.
type named struct{ Carrier }

// String implements Carrier.
func (named) String() string { return "a" }

// Address implements Carrier.
func (named) Address() string { return "a" }

// FuzzReport: whatever a server says of itself is a report or an error, and what is taken from a report is well formed.
func FuzzReport(f *testing.F) {
	text, err := json.Marshal(server.Report{Host: "h", Card: server.CardReport{Name: "eth0", MTU: 1500, Addresses: []string{"192.0.2.1/24", "fe80::1/64", "2001:db8::1/64"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(text, '\n'))
	f.Add([]byte("{\"card\":{\"addresses\":[\"192.0.2.1\",\"/\",\"\"]}}\nmore"))
	f.Add([]byte("[]\n"))
	f.Add([]byte("{}"))
	f.Add(bytes.Repeat([]byte(" "), 100))
	f.Fuzz(func(t *testing.T, said []byte) {
		c := &conversation{in: bufio.NewReader(spoken{Reader: bytes.NewReader(said)})}
		if err := c.answer(&c.report); err != nil {
			if errors.Is(err, tail.ErrEndless) != (len(said) > answerMost && !bytes.Contains(said[:answerMost], []byte("\n"))) {
				t.Fatalf("%d bytes end in: %v", len(said), err)
			}
			return
		}
		if at := reachable(c.report.Card); at != "" {
			if _, err := netip.ParseAddr(at); err != nil {
				t.Errorf("it is reached at %q", at)
			}
		}
		if own := (Options{}).own(c.report.Card); len(own.Addresses) > len(c.report.Card.Addresses) {
			t.Errorf("it has the addresses %v", own.Addresses)
		}
		if all := hosts(named{}, c.report); len(all) < 3 || all[0] != "a" {
			t.Errorf("it is known as %q", all)
		}
	})
}
