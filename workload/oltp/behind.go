package oltp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"netdelta/internal/daemon"
	"netdelta/workload"
)

// tries is how often it is asked who answers: a service or a proxy may choose another database for each connection.
const tries = 4

// answering says which databases answer at a target's address, and what stands before them. One that does not say, since it is too old or since
// the user may not ask, can be measured all the same.
func answering(ctx context.Context, home *daemon.Sandbox, t workload.Target) (string, error) {
	names, err := behind(ctx, home, t)
	switch {
	case ctx.Err() != nil:
		return "", err
	case err != nil:
		return fmt.Sprintf("an unknown host, perhaps behind a proxy or a translation of addresses: it does not say (%s)", strings.Join(strings.Fields(err.Error()), " ")), nil
	}
	return names, nil
}

// behind names the databases that answer at a target's address, and says so where connections do not reach them as clients make them: a proxy
// ends them and makes its own, and a translation of addresses has them come from elsewhere.
func behind(ctx context.Context, home *daemon.Sandbox, t workload.Target) (string, error) {
	var names []string
	far := ""
	for range tries {
		said, begins, err := through(ctx, home, t.At(), "select @@hostname, (select host from information_schema.processlist where id = connection_id())")
		if err != nil {
			return "", err
		}
		name, seen, _ := strings.Cut(said, "\t")
		names = append(names, name)
		if !begun(begins, seen) {
			far = fmt.Sprintf("; it sees a connection from %s that this client makes from %s: a proxy or a translation of addresses stands before it, and is measured with it", seen, begins)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 1 {
		far = ", one for each connection" + far
	}
	return strings.Join(names, " and ") + far, nil
}

// begun says whether a database sees a connection begin where it does. It may know a name in place of the address; where it says no
// port, it is not known.
func begun(at netip.AddrPort, seen string) bool {
	colon := strings.LastIndexByte(seen, ':')
	if colon < 0 {
		return true
	}
	host, err := netip.ParseAddr(seen[:colon])
	return seen[colon+1:] == strconv.Itoa(int(at.Port())) && (err != nil || host.Unmap() == at.Addr().Unmap())
}

// through has a database run statements over a connection that is made here, so that it is known where it begins: the database's client is
// led to it.
func through(ctx context.Context, home *daemon.Sandbox, to netip.AddrPort, statements string) (said string, begins netip.AddrPort, err error) {
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", begins, err
	}
	far, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	if err != nil {
		_ = near.Close()
		return "", begins, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		client, err := near.Accept()
		if err != nil {
			return // it is no longer wanted
		}
		go func() { // it ends when one of the two is closed
			_, _ = io.Copy(far, client)
		}()
		_, _ = io.Copy(client, far) // an error is the client's too
		_ = client.Close()
	}()
	said, err = query(ctx, home, statements, "--host=127.0.0.1", "--port="+strconv.Itoa(near.Addr().(*net.TCPAddr).Port))
	_, _ = near.Close(), far.Close()
	<-done
	return said, far.LocalAddr().(*net.TCPAddr).AddrPort(), err
}
