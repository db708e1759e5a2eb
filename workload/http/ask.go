package http

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/result"
	"netdelta/workload"
)

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
	server := a.header.Get("Server")
	if server == "" {
		server = "it"
	}
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
		return fmt.Errorf("%w: nothing listens on this port; is it the port of the Service, and does a ready pod stand behind it?", err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: does its Service have this port, is there a NetworkPolicy or a firewall before it? (%w)", holdWithin, err)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Errorf("it does not speak HTTP/1.1 there: %w; is it a port of https or of another protocol?", err)
	}
	return err
}
