package http

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/textproto"
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
func hold(ctx context.Context, _ result.Params, t workload.Target) (workload.Held, error) {
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

// asker asks a server for a file, on one connection as long as the server keeps it. It sends what the measured loop sends. It stands in
// for net/http, which would be half of what is sent into pods.
type asker struct {
	conn net.Conn
	in   *bufio.Reader
	stop func() bool // ends that conn is interrupted with the context
}

// answer is the head of a response, and its body as it stands on the connection.
type answer struct {
	status string // "404 Not Found"
	code   int
	header textproto.MIMEHeader
	length int64 // of the body, -1 where the server does not say
	body   io.Reader
}

func (k *asker) close() {
	if k.conn != nil {
		k.stop()
		_ = k.conn.Close() // nothing is waiting to be sent
		k.conn = nil
	}
}

// file asks for the file once. A connection that was kept may have been closed by the server meanwhile: then it takes another.
func (k *asker) file(ctx context.Context, t workload.Target) (workload.Found, error) {
	kept := k.conn != nil
	a, err := k.ask(ctx, t)
	if kept && err != nil && ctx.Err() == nil {
		k.close()
		a, err = k.ask(ctx, t)
	}
	if err != nil {
		return workload.Found{}, unanswered(err)
	}
	if err := usable(a); err != nil {
		return workload.Found{}, err
	}
	n, err := io.CopyN(io.Discard, a.body, a.length)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("its body has %d bytes where %d were announced", n, a.length)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return workload.Found{}, fmt.Errorf("read its answer: %w", err)
	}
	if strings.EqualFold(a.header.Get("Connection"), "close") {
		k.close()
	}
	server := cmp.Or(a.header.Get("Server"), "it")
	return workload.Found{Length: n, Says: fmt.Sprintf("%.80s answers %d with %d bytes", server, a.code, n)}, nil
}

// ask sends the request and reads the head of the response.
func (k *asker) ask(ctx context.Context, t workload.Target) (a *answer, err error) {
	if k.conn == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.At().String())
		if err != nil {
			return nil, err
		}
		k.conn, k.in = conn, bufio.NewReader(conn)
		k.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	}
	if _, err = io.WriteString(k.conn, requestTo(result.Params{}, t)); err == nil {
		a, err = readHead(k.in)
	}
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return a, err
}

// readHead reads the head of a response, and skips heads of status 1xx before it.
func readHead(in *bufio.Reader) (*answer, error) {
	for head := textproto.NewReader(in); ; {
		line, err := head.ReadLine()
		if err != nil {
			return nil, err
		}
		protocol, status, _ := strings.Cut(line, " ")
		number, _, _ := strings.Cut(status, " ")
		code, err := strconv.Atoi(number)
		if err != nil || !strings.HasPrefix(protocol, "HTTP/1.") {
			return nil, fmt.Errorf("malformed HTTP response %.60q", line)
		}
		header, err := head.ReadMIMEHeader()
		if err != nil {
			return nil, fmt.Errorf("malformed HTTP response: %w", err)
		}
		if code >= 200 {
			return &answer{status: status, code: code, header: header, length: bodyLength(code, header), body: in}, nil
		}
	}
}

func bodyLength(code int, header textproto.MIMEHeader) int64 {
	n, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	switch {
	case code == 204 || code == 304:
		return 0
	case err != nil || n < 0 || header.Get("Transfer-Encoding") != "":
		return -1
	}
	return n
}

// unanswered is the error of a request that was not answered, with what to do.
func unanswered(err error) error {
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w: nothing listens on this port; is it the server's port, or its Service's with a ready pod behind it?", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: is it the server's port, or its Service's, is there a NetworkPolicy or a firewall before it? (%w)", holdWithin, err)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Errorf("it does not speak HTTP/1.1 there: %w; is it a port of https or of another protocol?", err)
	}
	return err
}
