package oltp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/workload"
)

// targeted is how oltp speaks to a database of the user's own.
func targeted() *workload.Targeted {
	return &workload.Targeted{Schemes: schemes(), Hold: hold, Dial: dialTarget, Clear: clearTarget}
}

// hold logs in and has the database have the tables.
func hold(ctx context.Context, p result.Params, t workload.Target) (_ workload.Held, err error) {
	s, err := login(t)
	if err != nil {
		return nil, fmt.Errorf("oltp: %s: %w", t, err)
	}
	h := &held{session: s, tables: tablesOf(p)}
	if err := h.ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("oltp: %s at %s: %w", t, t.At(), err), s.close())
	}
	return h, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), ", ") }

// dialTarget opens a client of a database of the user's own.
func dialTarget(ctx context.Context, p result.Params, t workload.Target, cpu int) (engine.Client, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	s, err := login(t)
	if err != nil {
		return nil, fmt.Errorf("oltp: %s: %w", t, err)
	}
	data := dataOf(p)
	if err := counted(ctx, data, s.query); err != nil {
		return nil, errors.Join(fmt.Errorf("oltp: %s at %s: look at its tables before they are used: %w", t, t.At(), err), s.close())
	}
	return newClient(ctx, p, s.home, fmt.Sprintf("oltp: database %s at %s", t.Database(), t.At()), cpu, &client{run: s.load(data), env: s.env(s.home), ask: s.query, data: data})
}

// tries is how often it is asked who answers: a service or a proxy may choose another database for each connection.
const tries = 4

// answering says which databases answer at a target's address, and what stands before them. One that does not say, since it is too old or since
// the user may not ask, can be measured all the same.
func answering(ctx context.Context, s session) (string, error) {
	names, err := behind(ctx, s)
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
func behind(ctx context.Context, s session) (string, error) {
	var names []string
	far := ""
	for range tries {
		said, begins, err := through(ctx, s)
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

// through asks a database who it is and whom it sees, over a connection that is made here, so that it is known where it begins: the
// database's client is led to it.
func through(ctx context.Context, s session) (said string, begins netip.AddrPort, err error) {
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", begins, err
	}
	far, err := new(net.Dialer).DialContext(ctx, "tcp", s.target.At().String())
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
	said, err = s.queryAt(ctx, near.Addr().(*net.TCPAddr).AddrPort(), s.who)
	_, _ = near.Close(), far.Close()
	<-done
	return said, far.LocalAddr().(*net.TCPAddr).AddrPort(), err
}
