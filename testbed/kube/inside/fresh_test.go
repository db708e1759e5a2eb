package inside

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netdelta/testbed"
)

// TestVisit: a fresh pod says when it was let in first, and what passed that was to be refused.
func TestVisit(t *testing.T) {
	const port = 20974
	visit := func(admitted bool, within time.Duration) testbed.FreshResult {
		t.Helper()
		text, err := json.Marshal(FreshTry{
			At: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), Every: 2 * time.Millisecond, Admitted: admitted, Within: within,
		})
		if err != nil {
			t.Fatal(err)
		}
		left := filepath.Join(t.TempDir(), "words")
		if err := call(string(text), left); err != nil {
			t.Fatal(err)
		}
		var v testbed.FreshResult
		words, err := os.ReadFile(left)
		if err == nil {
			err = json.Unmarshal(words, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := visit(false, time.Minute); !v.Settled || v.Passed > 0 || v.Before != 0 || v.After != 0 {
		t.Errorf("without an answer: %+v", v)
	}
	if v := visit(true, 100*time.Millisecond); v.Settled || v.Passed > 0 || v.Sent == 0 || v.Before == 0 {
		t.Errorf("without an answer one is let in: %+v", v)
	}
	in, end := io.Pipe()
	ready, told := io.Pipe()
	done := make(chan error, 1)
	go func() {
		time.Sleep(50 * time.Millisecond)
		done <- answer(fmt.Sprint(port), in, told)
	}()
	go func() { _, _ = ready.Read(make([]byte, 6)) }()
	if v := visit(true, time.Minute); !v.Settled || v.Passed != 1 || v.After <= v.Before || v.After < 40*time.Millisecond {
		t.Errorf("where somebody begins to answer: %+v", v)
	}
	if v := visit(false, 100*time.Millisecond); v.Settled || v.Passed == 0 || v.Passed > v.Sent || v.Before == 0 {
		t.Errorf("where somebody answers strangers: %+v", v)
	}
	if err := end.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", `{"every_ns": 5}`, `{"within_ns": 5}`} {
		if err := call(bad, os.DevNull); err == nil {
			t.Errorf("%q is a visit", bad)
		}
	}
}
