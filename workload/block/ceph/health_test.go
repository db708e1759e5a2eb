package ceph

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestGroupsThatAreUnclean(t *testing.T) {
	for state, want := range map[string]bool{
		"Started/Primary/Active/Clean":             false,
		"Started/ReplicaActive/RepNotRecovering":   false,
		"Started/ReplicaActive/RepRecovering":      false, // its leader says so
		"Started/Primary/Active/Recovering":        true,
		"Started/Primary/Active/Recovered":         true,
		"Started/Primary/Peering/WaitUpThru":       true,
		"Started/Primary/WaitActingChange":         true,
		"Started/Stray":                            true,
		"Reset":                                    true,
		"Started/Primary/Active/WaitLocalRecovery": true,
	} {
		if got := (group{State: state}).unclean(); got != want {
			t.Errorf("%s: unclean %t, want %t", state, got, want)
		}
	}
}

// socketed is the other end of an admin socket.
type socketed struct {
	heard  bytes.Buffer
	answer io.Reader
}

func (s *socketed) Write(p []byte) (int, error) { return s.heard.Write(p) }
func (s *socketed) Read(p []byte) (int, error)  { return s.answer.Read(p) }

func TestExchange(t *testing.T) {
	framed := func(length uint32, text string) io.Reader {
		return bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, length), text...))
	}
	s := &socketed{answer: framed(18, `{"state":"active"}`)}
	text, err := exchange(s, "status")
	if err != nil || string(text) != `{"state":"active"}` {
		t.Errorf("%q, %v", text, err)
	}
	if got := s.heard.String(); got != `{"format":"json","prefix":"status"}`+"\x00" {
		t.Errorf("the daemon hears %q", got)
	}
	if _, err := exchange(&socketed{answer: framed(18, `{"state"`)}, "status"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("an answer that is cut off: %v", err)
	}
	if _, err := exchange(&socketed{answer: strings.NewReader("")}, "status"); !errors.Is(err, io.EOF) {
		t.Errorf("no answer: %v", err)
	}
	if _, err := exchange(&socketed{answer: framed(1<<31, "")}, "status"); err == nil {
		t.Error("an answer of 2 GiB is read")
	}
}
