package ssh

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/internal/tail"
	"netdelta/testbed/servers"
)

// TestEndless: the connection to a server that says something without end, at its login or in the place of a supervisor, is closed at once.
func TestEndless(t *testing.T) {
	// What follows the script's two lines is sent to it, and read by nobody.
	supervisor := "echo netdelta-ready x86_64 -; read -r n; echo netdelta-hash $(head -c 65536 | sha256sum); "
	for name, c := range map[string]struct{ script, says string }{
		"lines":                 {"echo welcome; exec yes", "begin with \"welcome\\ny"},
		"one line":              {"exec cat /dev/zero", "at a login"},
		"lines of a supervisor": {supervisor + "exec yes", "invalid character"},
		"one of a supervisor":   {supervisor + "exec cat /dev/zero", "more than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ssh, program := filepath.Join(dir, "ssh"), filepath.Join(dir, "program")
			require.NoError(t, os.WriteFile(ssh, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700))
			require.NoError(t, os.WriteFile(program, []byte("a program"), 0o700))
			o := Options{Nodes: []Node{{Host: "a"}}, Command: []string{ssh}, Program: func(string) (string, error) { return program, nil }}
			began := time.Now()
			seen := servers.Look(t.Context(), o.Machines(), servers.NIC{})
			if err := seen[0].Err; err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it ends in: %v", err)
			}
			// A supervisor that ends in good order is waited for, for half a minute.
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// FuzzAwait: whatever a login prints, the words after the first line of the script come of it, or an error.
func FuzzAwait(f *testing.F) {
	f.Add([]byte("netdelta-ready x86_64 192.0.2.1\n"))
	f.Add([]byte("SSH-2.0-OpenSSH_10.0\r\n\x1b[31mWelcome\x07\n\nnetdelta-ready\n"))
	f.Add([]byte("xnetdelta-ready a\n netdelta-ready\taarch64  -  \r\n"))
	f.Add(bytes.Repeat([]byte("y\n"), loginMost))
	f.Add(bytes.Repeat([]byte{0}, loginMost+1))
	f.Add([]byte("netdelta-ready x86_64"))
	f.Fuzz(func(t *testing.T, said []byte) {
		l := &link{out: bufio.NewReaderSize(bytes.NewReader(said), 16)}
		words, err := l.await(sayReady)
		rest, _ := io.ReadAll(l.out) // it is in memory
		switch read := len(said) - len(rest); {
		case errors.Is(err, tail.ErrEndless):
			if len(said) <= loginMost || len(err.Error()) > 20*loginShown {
				t.Fatalf("%d bytes end in: %v", len(said), err)
			}
		case read > loginMost:
			t.Fatalf("%d bytes were read", read)
		}
		if err != nil && words != nil || err == nil && !bytes.Contains(said, []byte(sayReady)) {
			t.Fatalf("%q, %v", words, err)
		}
	})
}
