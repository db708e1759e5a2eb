package tail_test

import (
	"io"
	"strings"
	"sync"
	"testing"

	"netdelta/internal/tail"
)

// The end is kept, however what is written is cut.
func TestKeepsTheEnd(t *testing.T) {
	const text = "the first words are lost, and the last are kept"
	for size := 1; size <= len(text); size++ {
		kept := tail.New(8)
		for rest := text; rest != ""; {
			n, err := io.WriteString(kept, rest[:min(size, len(rest))])
			if err != nil || n == 0 {
				t.Fatalf("%d written: %v", n, err)
			}
			rest = rest[n:]
		}
		if want := text[len(text)-8:]; kept.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size, kept, want)
		}
	}
	if few := tail.New(8); few.String() != "" {
		t.Errorf("nothing written, and %q kept", few)
	}
}

// Writers and readers may meet.
func TestAtOnce(t *testing.T) {
	kept := tail.New(4)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				_, _ = io.WriteString(kept, "x")
				_ = kept.String()
			}
		})
	}
	wg.Wait()
	if want := strings.Repeat("x", 4); kept.String() != want {
		t.Errorf("%q, want %q", kept, want)
	}
}
