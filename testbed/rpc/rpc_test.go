package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netdelta/internal/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestGreeting(t *testing.T) {
	if err := Greet().Check(); err != nil {
		t.Error(err)
	}
	for _, g := range []Greeting{{}, {Version: Version - 1}, {Version: Version + 1, Build: "v9"}} {
		err := g.Check()
		for _, says := range []string{fmt.Sprintf("protocol %d ", g.Version), fmt.Sprintf("this is %d ", Version), g.Build, "use the same netdelta on both sides"} {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%+v: got %v, want one with %q", g, err, says)
			}
		}
	}
}

type kinded struct{ error }

func (kinded) Kind() (string, any) { return "odd", map[string]int{"number": 7} }

// handle doubles numbers, of which it does not like some.
func handle(r Request) (any, error) {
	switch r.Op {
	case OpHello:
		return Greet(), nil
	case "double":
		return Call(r, func(n int) (int, error) {
			if n%2 == 1 {
				return 0, kinded{fmt.Errorf("%d is odd", n)}
			}
			return 2 * n, nil
		})
	case "hang":
		select {}
	}
	return nil, r.Unknown()
}

// process is one end of a pipe on whose other end Serve runs.
type process struct {
	net.Conn
	ended chan struct{}
}

func (p *process) PID() int              { return 1 }
func (p *process) Wait() error           { <-p.ended; return nil }
func (p *process) Kill() error           { return p.Conn.Close() }
func (p *process) Close() error          { defer func() { <-p.ended }(); return p.Conn.Close() }
func (p *process) Stderr() string        { return "its last" }
func (p *process) FailureReason() string { return "" }

func connect(t *testing.T) *Client {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &process{ours, make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = Serve(theirs, theirs, true, handle)
		_ = theirs.Close()
	}()
	return NewClient("pod p", p)
}

func TestCalls(t *testing.T) {
	c := connect(t)
	for n := range 10 {
		got, err := Do[int](t.Context(), c, "double", 2*n, time.Minute)
		if err != nil || got != 4*n {
			t.Errorf("%d: got %d, %v", 2*n, got, err)
		}
	}
	_, err := Do[int](t.Context(), c, "double", 3, time.Minute)
	if there, ok := errors.AsType[*Error](err); !ok || there.Kind != "odd" || string(there.Detail) != `{"number":7}` || err.Error() != "pod p: 3 is odd" {
		t.Errorf("got %v", err)
	}
	if _, err := Do[int](t.Context(), c, "dance", nil, time.Minute); err == nil || !strings.Contains(err.Error(), `no operation "dance"`) {
		t.Errorf("got %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Do[int](t.Context(), c, "double", 2, time.Minute); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "its last") || c.Alive() {
		t.Errorf("got %v", err)
	}
}

// A process that does not answer is given up when its deadline has passed, and no call waits for it any more.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		p := &process{ours, make(chan struct{})}
		go func() { defer close(p.ended); _, _ = io.Copy(io.Discard, theirs) }()
		c := NewClient("pod p", p)
		if _, err := Do[int](t.Context(), c, "hang", nil, time.Hour); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), `to "hang" within 1h`) {
			t.Errorf("got %v", err)
		}
		if _, err := Do[int](t.Context(), c, "double", 2, time.Minute); !errors.Is(err, ErrGone) {
			t.Errorf("got %v", err)
		}
		_ = c.Close()
	})
}

// The same requests on streams: answers, errors with their kinds, calls that are given up.
func TestAsk(t *testing.T) {
	a, b := net.Pipe()
	here, there := NewConn(a, true), NewConn(b, false)
	served := make(chan error, 1)
	go func() {
		served <- there.Serve(func(s *Stream, r Request) {
			if r.Op == "hang" {
				<-s.Left()
				return
			}
			value, err := handle(r)
			s.Answer(r, value, err)
		}, func() error { return nil })
	}()
	if g, err := Ask[Greeting](t.Context(), here, OpHello, nil); err != nil || g.Check() != nil {
		t.Errorf("got %+v, %v", g, err)
	}
	if n, err := Ask[int](t.Context(), here, "double", 4); err != nil || n != 8 {
		t.Errorf("got %d, %v", n, err)
	}
	_, err := Ask[int](t.Context(), here, "double", 3)
	if e, ok := errors.AsType[*Error](err); !ok || e.Kind != "odd" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := Ask[int](ctx, here, "hang", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	_ = here.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Whatever comes in, each line that goes out is an answer.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"id":1,"op":"hello"}` + "\n" + `{"id":2,"op":"double","args":4}` + "\n"))
	f.Add([]byte(`{"id":1,"op":"double","args":"x"}` + "\nwhat?\n"))
	f.Add([]byte(`{"id":18446744073709551615,"op":"` + "\x00" + `"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		err := Serve(bytes.NewReader(in), &out, false, func(r Request) (any, error) {
			if r.Op == "hang" {
				return nil, errors.New("not here")
			}
			return handle(r)
		})
		if err != nil {
			return // the answers before it may be under way
		}
		for d := json.NewDecoder(&out); d.More(); {
			var a Answer
			if err := d.Decode(&a); err != nil || (a.Error == nil) == (a.Value == nil) {
				t.Fatalf("%q: %+v, %v", in, a, err)
			}
		}
	})
}

// Whatever comes in, a connection ends when its input does, and all that waits on it too.
func FuzzConn(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0, 2, '{', '}', 2, 0, 0, 0, 1, 0, 0, 0, 1, 'x', 3, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Add([]byte{4, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		ours, theirs := net.Pipe()
		c := NewConn(ours, false)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go func() { _, _ = theirs.Write(in); _ = theirs.Close() }()
		err := c.Serve(func(s *Stream, r Request) {
			for {
				if _, _, err := ReadMessage(s); err != nil {
					break
				}
			}
			s.Answer(r, nil, r.Unknown())
		}, func() error { return nil })
		if err != nil || c.Err() == nil {
			t.Errorf("%x: %v, and the connection ended with %v", in, err, c.Err())
		}
	})
}
