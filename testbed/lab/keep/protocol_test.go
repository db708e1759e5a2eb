package keep

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"netdelta/testbed/rpc"
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

// An answer arrives as it was sent, however large, and the keeper holds what it names until the client has used it.
func TestAnswers(t *testing.T) {
	for name, pods := range map[string]int{"none": 0, "few": 4, "all that a lab can have": 250 * 45} {
		t.Run(name, func(t *testing.T) {
			f := folder(t)
			listener, err := at(f.file("x", socketEnd), func(a *net.UnixAddr) (*net.UnixListener, error) { return net.ListenUnix("unix", a) })
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			sent := Status{Name: "x", Path: strings.Repeat("p", 1000)}
			for range pods {
				sent.Pods = append(sent.Pods, Pod{Name: "pod11249", Node: "node249", Address: "2001:2:0:1f9::3c", Reached: "2001:2::fa", Port: 64999})
			}
			left := make(chan struct{})
			go func() {
				client, err := listener.AcceptUnix()
				if err != nil {
					return
				}
				conn := rpc.NewConn(client, false)
				_ = conn.Serve(func(stream *rpc.Stream, r rpc.Request) {
					if r.Op == rpc.OpHello {
						stream.Answer(r, rpc.Greet(), nil)
						return
					}
					stream.Answer(r, sent, nil)
					<-conn.Done()
					close(left)
				}, nil)
			}()
			got, err := ask(t.Context(), f, "x", opStatus, nil, answerPatience, func(Status) error {
				select {
				case <-left:
					t.Error("the keeper has not waited for its client")
				default:
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			<-left
			if diff := cmp.Diff(sent, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A keeper of another version is named, with what to do about it.
func TestAnotherVersion(t *testing.T) {
	f := folder(t)
	listener, err := at(f.file("x", socketEnd), func(a *net.UnixAddr) (*net.UnixListener, error) { return net.ListenUnix("unix", a) })
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if client, err := listener.AcceptUnix(); err == nil {
			_ = rpc.NewConn(client, false).Serve(func(stream *rpc.Stream, r rpc.Request) {
				stream.Answer(r, rpc.Greeting{Version: rpc.Version + 1, Build: "v99"}, nil)
			}, nil)
		}
	}()
	if _, err := f.Status(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "v99") || !strings.Contains(err.Error(), "netdelta lab down --name x") {
		t.Errorf("got error %v", err)
	}
}

// Whatever a client writes, the keeper ends no more than the client's connection.
func FuzzTalk(f *testing.F) {
	for _, s := range []string{"", "{}", "\x00", "\x01\x00\x00\x00\x01\x00\x00\x00\x0e" + `{"op":"dance"}`, "\x01\x00\x00\x00\x01\x00\x00\x00\x0e" + `{"op":"hello"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		near, far := pair(t)
		go func() {
			_, _ = near.Write(text) // as far as it goes
			near.Close()
		}()
		(&keeper{}).talk(t.Context(), far)
	})
}
