package http

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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
	transport := &http.Transport{
		DisableCompression: true, Proxy: nil,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", t.At().String())
		},
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var found workload.Found
	for i := range 2 {
		again, err := ask(ctx, client, t)
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

// ask asks for the file once.
func ask(ctx context.Context, client *http.Client, t workload.Target) (workload.Found, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.String(), http.NoBody)
	if err != nil {
		return workload.Found{}, err
	}
	request.Header.Set("User-Agent", "") // none, as in what is measured
	answer, err := client.Do(request)
	if err != nil {
		return workload.Found{}, unanswered(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read, or is of no use
	if err := usable(answer); err != nil {
		return workload.Found{}, err
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if err == nil && n != answer.ContentLength {
		err = fmt.Errorf("its body has %d bytes where %d were announced", n, answer.ContentLength)
	}
	if err != nil {
		return workload.Found{}, fmt.Errorf("read its answer: %w", err)
	}
	server := answer.Header.Get("Server")
	if server == "" {
		server = "it"
	}
	return workload.Found{Length: n, Says: fmt.Sprintf("%.80s answers %d with %d bytes", server, answer.StatusCode, n)}, nil
}

// unanswered is the error of a request that was not answered, with what to do.
func unanswered(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // it is said elsewhere what was asked for
	}
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w: nothing listens on this port; is it the port of the Service, and does a ready pod stand behind it?", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: does its Service have this port, is there a NetworkPolicy or a firewall before it? (%w)", holdWithin, err)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Errorf("it does not speak HTTP/1.1 there: %w; is it a port of https or of another protocol?", err)
	}
	return err
}

// usable refuses answers that the measured client can't check.
func usable(answer *http.Response) error {
	switch code := answer.StatusCode; {
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return fmt.Errorf("it answers %s and leads elsewhere, to %.200q; name that", answer.Status, answer.Header.Get("Location"))
	case code == http.StatusBadRequest && isTLSPort(answer):
		return fmt.Errorf("it answers %s: it speaks https on this port; name the port of plain HTTP", answer.Status)
	case code < http.StatusOK || code >= http.StatusMultipleChoices:
		return fmt.Errorf("it answers %s; only answers of 200 to 299 are measured: name a path that gives one", answer.Status)
	case answer.ContentLength < 0:
		return errors.New("it does not say how long its answer is (no Content-Length), so that a broken one could not be told; name something of a known length, such as a file")
	case code == http.StatusNoContent:
		return errors.New("it answers 204 without a body; name a path that gives one")
	case answer.ContentLength > int64(mostFile):
		return fmt.Errorf("its answer has %d bytes; %d at most are measured", answer.ContentLength, int64(mostFile))
	}
	return nil
}

// isTLSPort says whether a server complains of plain HTTP on its port of https.
func isTLSPort(answer *http.Response) bool {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096)) // what came of it has to do
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
func dialTarget(ctx context.Context, p result.Params, t workload.Target, cpu int) (workload.Client, error) {
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
