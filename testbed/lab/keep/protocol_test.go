package keep

import (
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// pair is a connection and its other end.
func pair(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "end")
		conn, err := net.FileConn(file)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		ends[i] = conn.(*net.UnixConn)
	}
	near, far = ends[0], ends[1]
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// A message arrives as it was sent, however large, with its descriptors.
func TestMessages(t *testing.T) {
	for name, pods := range map[string]int{"none": 0, "few": 4, "all that a lab can have": 250 * 45} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			sent := answer{Mark: "m", Status: &Status{Name: "x", Path: strings.Repeat("p", 1000)}}
			for range pods {
				sent.Status.Pods = append(sent.Status.Pods, Pod{Name: "pod11249", Node: "node249", Address: "2001:2:0:1f9::3c", Reached: "2001:2::fa", Port: 64999})
			}
			file, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			done := make(chan error, 1)
			go func() {
				err := tell(near, sent, int(file.Fd()), int(file.Fd()))
				near.Close()
				done <- err
			}()
			var got answer
			files, err := hear(far, &got)
			if err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(sent, got); diff != "" {
				t.Error(diff)
			}
			if len(files) != 2 {
				t.Fatalf("%d descriptors, want 2", len(files))
			}
			mine, err1 := file.Stat()
			theirs, err2 := files[1].Stat()
			if err1 != nil || err2 != nil || !os.SameFile(mine, theirs) {
				t.Errorf("another file arrived: %v, %v", err1, err2)
			}
			if err := closeAll(files); err != nil {
				t.Error(err)
			}
		})
	}
}

// Whatever comes is a request or an error.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{`{"do":"status"}`, `{"do":"enter","where":"pod0"}`, `{}`, ``, `{"do":`, "\x00", `[[[[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		near, far := pair(t)
		go func() {
			_, _ = near.Write(text) // as far as it goes
			near.Close()
		}()
		var got, want request
		_, err := hear(far, &got)
		if bad := json.Unmarshal(text, &want); (err == nil) != (bad == nil) || err == nil && got != want {
			t.Errorf("%q became %+v, %v; want %+v, %v", text, got, err, want, bad)
		}
	})
}
