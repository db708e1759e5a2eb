package rpc_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"

	"netdelta/testbed/rpc"
)

func pair(t *testing.T) (a, b *rpc.Conn) {
	t.Helper()
	x, y := net.Pipe()
	a, b = rpc.NewConn(x, true), rpc.NewConn(y, false)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// TestEcho: many streams at once, each gets back what it sent, many windows of it.
func TestEcho(t *testing.T) {
	a, b := pair(t)
	go func() {
		for {
			s, err := b.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(s, s)
				_ = s.CloseWrite()
			}()
		}
	}()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			sent := bytes.Repeat([]byte{byte(i), 1, 2}, 1<<19)
			s, err := a.Open([]byte{byte(i)})
			if err != nil {
				t.Error(err)
				return
			}
			go func() {
				if _, err := s.Write(sent); err != nil {
					t.Error(err)
				}
				if err := s.CloseWrite(); err != nil {
					t.Error(err)
				}
			}()
			got, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("stream %d: got %d bytes of %d back: %v", i, len(got), len(sent), err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestSlowReader: a stream without a reader does not hold up another.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		stuck, err := a.Open(nil)
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := stuck.Write(make([]byte, 1<<20))
			failed <- err
		}()
		other, err := a.Open([]byte("other"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = other.Write([]byte("word")) }()
		if _, err := b.Accept(); err != nil {
			t.Fatal(err)
		}
		s, err := b.Accept()
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4)
		if _, err := io.ReadFull(s, got); err != nil || string(got) != "word" {
			t.Fatalf("got %q: %v", got, err)
		}
		synctest.Wait()
		select {
		case err := <-failed:
			t.Fatalf("a mebibyte went into a window of a quarter: %v", err)
		default:
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-failed; err == nil {
			t.Error("writing to a connection that ended reports nothing")
		}
	})
}

// TestDropped: who writes to a stream that the other end has closed learns it.
func TestDropped(t *testing.T) {
	a, b := pair(t)
	s, err := a.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	far, err := b.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = s.Write(make([]byte, 1000))
	}
	if !errors.Is(err, rpc.ErrDropped) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("reading gave %v", err)
	}
}
