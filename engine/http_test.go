package engine

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// speaker answers requests of HTTP as a test likes: each with what say gives for its number, and it hangs up where that ends with
// hangUp. It serves until the test ends.
func speaker(t *testing.T, say func(n int64) []string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var requests atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go converse(c, &requests, say)
		}
	}()
	return netip.MustParseAddrPort(l.Addr().String())
}

const hangUp = "hang up"

func converse(c net.Conn, requests *atomic.Int64, say func(n int64) []string) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if line != "\r\n" {
			continue
		}
		for i, part := range say(requests.Add(1)) {
			if part == hangUp {
				return
			}
			if i > 0 {
				time.Sleep(2 * time.Millisecond) // so that they come one by one
			}
			if _, err := c.Write([]byte(part)); err != nil {
				return
			}
		}
	}
}

// response is a good one, whose body has so many bytes.
func response(body int, headers ...string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s", strings.Join(headers, ""), body, strings.Repeat("x", body))
}

func dialSpeaker(t *testing.T, to netip.AddrPort, p result.Params) (Client, error) {
	t.Helper()
	p.File = 10 * unit.Byte
	c, err := Dial(t.Context(), Config{
		Workload: "http", Kind: HTTPGet, Params: p, Remote: to, Local: netip.MustParseAddrPort("127.0.0.1:0"), CPU: -1,
		Request: "GET /10 HTTP/1.1\r\n\r\n",
	})
	if c != nil && err == nil {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return c, err
}

// forms cover one connection and several, kept connections and new ones.
func forms() []result.Params {
	return []result.Params{{Connections: 1}, {Connections: 3}, {Connections: 1, Reconnect: true}, {Connections: 3, Reconnect: true}}
}

// TestHTTPFailures: what fails is counted, is no transaction, and does not keep what is good from being counted.
func TestHTTPFailures(t *testing.T) {
	failures := map[string][]string{
		"another status":       {"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nnot there."},
		"a server's error":     {"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"},
		"another length":       {response(9)},
		"a body cut short":     {response(10)[:40], hangUp},
		"a head cut short":     {"HTTP/1.1 200 OK\r\nContent-", hangUp},
		"nothing":              {hangUp},
		"no length":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		"not HTTP":             {"SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n\r\n\r\n"},
		"more than was said":   {response(10) + "y"},
		"a head without end":   {strings.Repeat("a", headRoom/2), strings.Repeat("a", headRoom/2), strings.Repeat("a", headRoom)},
		"a length beyond 64 b": {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n"},
	}
	for name, bad := range failures {
		for _, p := range forms() {
			t.Run(fmt.Sprintf("%s %d %v", name, p.Connections, p.Reconnect), func(t *testing.T) {
				good := []string{response(10)}
				if p.Reconnect {
					good = []string{response(10, "Connection: close\r\n"), hangUp}
				}
				failing := slices.Concat(bad, []string{hangUp})
				// The bursts that warm connections up have only good ones.
				warm := int64(16)
				c, err := dialSpeaker(t, speaker(t, func(n int64) []string {
					if n > warm && n%4 == 0 {
						return failing
					}
					return good
				}), p)
				if err != nil {
					t.Fatal(err)
				}
				b, err := c.Burst(BurstSpec{Transactions: 40, Deadline: 20 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				if b.Transactions != 30 || b.Errors != 10 || b.Moved < 30*int64(len(response(10))) {
					t.Errorf("%d transactions and %d errors, %d bytes; want 30 and 10", b.Transactions, b.Errors, b.Moved)
				}
				if totals, err := c.Collect(false); err != nil || totals.Transactions != 30 || totals.Errors != 10 {
					t.Errorf("%+v, %v", totals, err)
				}
			})
		}
	}
}

// TestHTTPNothingButFailures: a burst in which nothing succeeds ends, and says why.
func TestHTTPNothingButFailures(t *testing.T) {
	for _, p := range forms() {
		_, err := dialSpeaker(t, speaker(t, func(int64) []string {
			return []string{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}
		}), p)
		if err == nil || !strings.Contains(err.Error(), " 404") || !strings.Contains(err.Error(), "in a row have failed") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestHTTPPieces: a response is as good in pieces, and whatever its head looks like.
func TestHTTPPieces(t *testing.T) {
	for _, p := range forms() {
		heads := []string{"", "Server: x\r\n", "X-Long: " + strings.Repeat("y", 900) + "\r\n", "connection: keep-alive\r\n"}
		c, err := dialSpeaker(t, speaker(t, func(n int64) []string {
			whole := response(10, heads[n%int64(len(heads))])
			whole = strings.Replace(whole, "Content-Length", []string{"content-length", "CONTENT-LENGTH"}[n%2], 1)
			all := []string{whole[:9], whole[9:30], whole[30 : len(whole)-12], whole[len(whole)-12:]}
			if n%3 == 0 {
				all = []string{whole}
			}
			if p.Reconnect {
				all = append(all, hangUp)
			}
			return all
		}), p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Burst(BurstSpec{Transactions: 30, Deadline: 20 * time.Second})
		if err != nil || b.Transactions != 30 || b.Errors != 0 {
			t.Errorf("%+v: %d transactions, %d errors, %v", p, b.Transactions, b.Errors, err)
		}
	}
}

// TestHTTPServerHangsUp: a server that says that it closes the connection is taken at its word, and another one is opened.
func TestHTTPServerHangsUp(t *testing.T) {
	for _, p := range forms() {
		c, err := dialSpeaker(t, speaker(t, func(n int64) []string {
			if n%3 == 0 || p.Reconnect {
				return []string{response(10, "Connection: close\r\n"), hangUp}
			}
			return []string{response(10)}
		}), p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.Burst(BurstSpec{Transactions: 60, Deadline: 20 * time.Second})
		if err != nil || b.Transactions != 60 || b.Errors != 0 {
			t.Errorf("%+v: %d transactions, %d errors, %v", p, b.Transactions, b.Errors, err)
		}
	}
}
