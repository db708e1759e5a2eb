package ssh_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/ssh"
)

// callers are the addresses that asked a web server which runs on a server already.
type callers struct {
	mu   sync.Mutex
	seen map[string]int
}

// serveWeb runs a web server on one of the farm's.
func (f *farm) serveWeb(t *testing.T, on int) (at string, c *callers) {
	t.Helper()
	c = &callers{seen: map[string]int{}}
	var l net.Listener
	must(t, f.inside[on].Do(func() (err error) {
		l, err = net.Listen("tcp", f.names[on]+":0")
		return err
	}))
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		c.mu.Lock()
		c.seen[host]++
		c.mu.Unlock()
		_, _ = w.Write(make([]byte, 300))
	})}
	ended := make(chan struct{})
	go func() {
		_ = web.Serve(l)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = web.Close()
		<-ended
	})
	return fmt.Sprintf("http://%s/file", l.Addr()), c
}

// TestTarget: a web server that runs on one of the servers already is measured from another one, at its own address and from a namespace
// over its card; clients on the endpoint's own node are on its server. Nothing else of a lab reaches it.
func TestTarget(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	before := f.before(t)
	target, asked := f.serveWeb(t, 0)
	text := strings.NewReplacer("builds: 6, rounds: 3", "builds: 1, rounds: 2").Replace(study)
	run, said := p.run(t, text, "--builds", "1", "--nodes", f.nodes(), "--nic", "macvlan:eth0,10.99.0.100/24", "--networks", "metal,host", "--target", target)
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	networks := map[string]bool{}
	for _, one := range contents.Trials {
		name, _, _ := strings.Cut(strings.Replace(one.Cell, "+twin", "", 1), "/")
		networks[name] = true
		if one.Failed != "" || one.Bursts.Transactions == nil {
			t.Errorf("%s: %s", one.Cell, one.Failed)
		}
	}
	if notes := strings.Join(run.Notes, "\n"); len(networks) != 2 || !strings.Contains(notes, target) {
		t.Errorf("there are trials of %v, and the notes are %s\n%s", networks, notes, said)
	}
	asked.mu.Lock()
	seen := asked.seen
	asked.seen = map[string]int{}
	asked.mu.Unlock()
	given := 0
	for host, n := range seen {
		at := netip.MustParseAddr(host)
		if own := at.Compare(netip.MustParseAddr("10.99.0.100")) >= 0; own && n > 1 {
			given++
		} else if host != f.names[1] && host != f.names[0] || n < 2 {
			t.Errorf("%s asked %d times", host, n)
		}
	}
	// Once it is looked at from its own server, before anything is measured.
	if given == 0 || seen[f.names[1]] <= seen[f.names[0]] {
		t.Errorf("clients asked from %v: want most from %s and addresses that were given", seen, f.names[1])
	}
	s, err := ssh.Open(t.Context(), f.options())
	must(t, err)
	for _, host := range []string{"server1", f.names[1], "10.98.0.2"} { // its own name, the user's, and an address of another card
		if site, err := s.Locate(t.Context(), host); err != nil || !slices.Equal(site.Nodes, f.names[1:]) {
			t.Errorf("an endpoint at %s stands on %v: %v", host, site.Nodes, err)
		}
	}
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: network.Metal, Target: f.names[1], Link: testbed.Link{MTU: serverMTU}})
	must(t, err)
	if pods := bed.Pods(); pods[0].Address().String() != f.names[1] || pods[1].Address().String() != f.names[0] {
		t.Errorf("the clients' addresses are %s on the endpoint's own server and %s on the other", pods[0].Address(), pods[1].Address())
	}
	if err := s.Supports(t.Context(), testbed.Spec{Network: "vxlan", Target: f.names[1]}); !errors.Is(err, testbed.ErrUnsupported) {
		t.Errorf("a tunnel to an endpoint: %v", err)
	}
	must(t, errors.Join(bed.Close(), s.Close()))
	f.unchanged(t, before, 5*time.Second)
}
