package vm

import (
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestTapes: a writer is never held up, however late the reader, and the reader gets everything, then the end.
func TestTapes(t *testing.T) {
	ended := make(chan struct{})
	ours, theirs, err := tapes(2, ended)
	if err != nil {
		t.Fatal(err)
	}
	// As QEMU opens it.
	to, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(theirs[1].Fd())), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("a line\n", 1<<17) // far more than a pipe or a socket takes
	for rest := want; rest != ""; rest = rest[min(len(rest), 1<<16):] {
		if _, err := io.WriteString(to, rest[:min(len(rest), 1<<16)]); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []*os.File{to, theirs[0], theirs[1]} {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	close(ended)
	for i, want := range []string{"", want} {
		got, err := io.ReadAll(ours[i])
		if err != nil || string(got) != want {
			t.Errorf("tape %d gave %d bytes, want %d: %v", i, len(got), len(want), err)
		}
		if err := ours[i].Close(); err != nil {
			t.Error(err)
		}
	}
}
