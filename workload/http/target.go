package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// holdWithin is how long a target may take to answer whole.
const holdWithin = 15 * time.Second

// targeted is how http speaks to a server of the user's own.
func targeted() *workload.Targeted {
	return &workload.Targeted{Schemes: []string{workload.SchemeHTTP}, Hold: hold, Dial: dialTarget}
}

// held is a server that has answered: nothing has to be taken away.
type held struct{ found workload.Found }

func (h held) Found() workload.Found { return h.found }

func (h held) Close() error { return nil }

// hold asks for the file twice, on one connection where the server keeps it, and refuses answers that can't be measured.
func hold(ctx context.Context, t workload.Target) (workload.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, holdWithin)
	defer cancel()
	var asked asker
	defer asked.close()
	var found workload.Found
	for i := range 2 {
		again, err := asked.file(ctx, t)
		switch {
		case err != nil:
			return nil, fmt.Errorf("http: %s at %s: %w", t, t.At(), err)
		case i > 0 && again.Length != found.Length:
			return nil, fmt.Errorf("http: %s at %s: it answered with %d bytes, and then with %d; name something whose answers are all as long, such as a file", t, t.At(), found.Length, again.Length)
		}
		found = again
	}
	return held{found}, nil
}

// usable refuses answers that the measured client can't check.
func usable(a *answer) error {
	switch code := a.code; {
	case code >= 300 && code < 400:
		return fmt.Errorf("it answers %s and leads elsewhere, to %.200q; name that", a.status, a.header.Get("Location"))
	case code == 400 && isTLSPort(a):
		return fmt.Errorf("it answers %s: it speaks https on this port; name the port of plain HTTP", a.status)
	case code < 200 || code >= 300:
		return fmt.Errorf("it answers %s; only answers of 200 to 299 are measured: name a path that gives one", a.status)
	case a.length < 0:
		return errors.New("it does not say how long its answer is (no Content-Length), so that a broken one could not be told; name something of a known length, such as a file")
	case code == 204:
		return errors.New("it answers 204 without a body; name a path that gives one")
	case a.length > int64(mostFile):
		return fmt.Errorf("its answer has %d bytes; %d at most are measured", a.length, int64(mostFile))
	}
	return nil
}

// isTLSPort says whether a server complains of plain HTTP on its port of https.
func isTLSPort(a *answer) bool {
	text, _ := io.ReadAll(io.LimitReader(a.body, 4096)) // what came of it has to do
	return strings.Contains(string(text), "HTTPS port")
}

// hostHeader is how the client names the server to itself.
func hostHeader(t workload.Target) string {
	host := t.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.Port != 80 {
		host += ":" + strconv.Itoa(int(t.Port))
	}
	return host
}

// requestTo is what a client sends to a server of the user's own, to the byte.
func requestTo(p result.Params, t workload.Target) string {
	text := "GET " + t.Path + " HTTP/1.1\r\nHost: " + hostHeader(t) + "\r\n"
	if p.Reconnect {
		text += "Connection: close\r\n"
	}
	return text + "\r\n"
}

// dialTarget opens a client of a server of the user's own.
func dialTarget(ctx context.Context, p result.Params, t workload.Target, cpu int) (engine.Client, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	if !t.At().IsValid() {
		return nil, fmt.Errorf("http: %s has no address yet", t)
	}
	p = fill(p)
	p.File = unit.Bytes(t.Length) // as long as the answer was that has been checked
	local := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	if t.Address.Is6() {
		local = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	}
	return engine.Dial(ctx, engine.Config{
		Workload: "http", Kind: engine.HTTPGet, Params: p, Local: local, Remote: t.At(), CPU: cpu, Request: requestTo(p, t),
	})
}
