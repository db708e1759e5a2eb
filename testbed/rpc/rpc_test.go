package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
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
		if _, err := Do[int](t.Context(), c, "hang", nil, time.Hour); !errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), `"hang"`) || !strings.Contains(err.Error(), "1h") {
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

// writes counts what is written.
type writes struct {
	net.Conn
	n atomic.Int64
}

func (w *writes) Write(b []byte) (int, error) {
	w.n.Add(1)
	return w.Conn.Write(b)
}

// A request and its answer wake up either end once, and nothing is left of them.
func TestAskIsOneWriteEachWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		asks, answers := &writes{Conn: a}, &writes{Conn: b}
		here := NewConn(asks, true)
		served := make(chan error, 1)
		go func() { served <- Serve(answers, answers, false, handle) }()
		for n := range int64(3) {
			if got, err := Ask[int](t.Context(), here, "double", 2*n); err != nil || got != int(4*n) {
				t.Errorf("got %d, %v", got, err)
			}
			synctest.Wait()
			if asks.n.Load() != n+1 || answers.n.Load() != n+1 || len(here.streams) != 0 {
				t.Errorf("call %d: %d and %d writes, %d streams left", n+1, asks.n.Load(), answers.n.Load(), len(here.streams))
			}
		}
		_ = here.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// What is not the protocol is shown: it may be another program's complaint.
func TestNoise(t *testing.T) {
	ours, theirs := net.Pipe()
	p := &process{ours, make(chan struct{})}
	close(p.ended)
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	c := NewClient("pod p", p)
	if _, err := theirs.Write([]byte("exec: no such program\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := Do[int](t.Context(), c, "double", 2, time.Minute); !errors.Is(err, ErrGone) || !errors.Is(err, errNotProtocol) || !strings.Contains(err.Error(), `"exec: no such program\n"`) {
		t.Errorf("got %v", err)
	}
	_, _ = c.Close(), theirs.Close()
}

// asked is a request on a stream of this number, as it is sent.
func asked(id uint32, request string) []byte {
	return frame(frame(nil, opens, id, []byte(request)), ends, id, nil)
}

// Whatever comes in, what goes out on each stream is an answer.
func FuzzServe(f *testing.F) {
	f.Add(append(asked(1, `{"op":"hello"}`), asked(3, `{"op":"double","args":4}`)...))
	f.Add(append(asked(1, `{"op":"double","args":"x"}`), "what?"...))
	f.Add(asked(1, `{"op":"`+"\x00"+`"}`))
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
		for rest := out.Bytes(); len(rest) > 0; {
			length := binary.BigEndian.Uint32(rest[5:])
			var a Answer
			if kind(rest[0]) == carries && (json.Unmarshal(rest[frameHead:frameHead+length], &a) != nil || (a.Error == nil) == (a.Value == nil)) {
				t.Fatalf("%q: %q", in, rest)
			}
			rest = rest[frameHead+length:]
		}
	})
}

// Whatever comes back, a call ends, and so does the connection, with a reason.
func FuzzAnswer(f *testing.F) {
	f.Add(frame(frame(nil, carries, 1, []byte(`{"value":4}`)), ends, 1, nil))
	f.Add(frame(frame(nil, opens, 2, []byte{7}), carries, 2, []byte{1, 2}))
	f.Add([]byte{9, 9})
	f.Fuzz(func(t *testing.T, in []byte) {
		ours, theirs := net.Pipe()
		c := NewConn(ours, true)
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		go func() { _, _ = theirs.Write(in); _ = theirs.Close() }()
		go func() { _ = c.Serve(func(*Stream, Request) {}, nil) }()
		_, _ = Ask[int](t.Context(), c, "double", 2)
		<-c.Done()
		if c.Err() == nil {
			t.Errorf("%x: the connection ended without a reason", in)
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
