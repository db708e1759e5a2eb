package inside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed/vm/wire"
)

// port is the guest's end of the channel.
type port struct {
	fd    int
	heard atomic.Bool // the host has written something
}

// pause is how long to wait before asking again for what the kernel can't wait for.
const pause = 5 * time.Millisecond

// openPort waits for the port to appear, and opens it.
func openPort(patience time.Duration) (*port, error) {
	for waited := time.Duration(0); ; waited += pause {
		device, err := findPort()
		if err != nil {
			return nil, err
		}
		if device != "" {
			fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err == nil {
				return &port{fd: fd}, nil
			}
			if waited >= patience {
				return nil, fmt.Errorf("open the channel to the host: %s: %w", device, err)
			}
		}
		if waited >= patience {
			return nil, fmt.Errorf("open the channel to the host: no port called %q appeared within %v", wire.Port, patience)
		}
		time.Sleep(pause)
	}
}

func findPort() (string, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return "", err
	}
	for _, n := range names {
		if text, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(text)) == wire.Port {
			return "/dev/" + filepath.Base(filepath.Dir(n)), nil
		}
	}
	return "", nil
}

// Read blocks in the kernel. An end before anything came means that the host has not connected yet.
func (p *port) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(p.fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, fmt.Errorf("read from the host: %w", err)
		case n > 0:
			p.heard.Store(true)
			return n, nil
		case p.heard.Load():
			return 0, fmt.Errorf("the host has closed the channel")
		default:
			time.Sleep(pause)
		}
	}
}

// Write blocks until the host has taken it.
func (p *port) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		n, err := unix.Write(p.fd, b[written:])
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
		case err != nil:
			return written, fmt.Errorf("write to the host: %w", err)
		case n == 0:
			time.Sleep(pause)
		}
		written += max(n, 0)
	}
	return written, nil
}

// Close leaves the descriptor open: a thread may be blocked in it, and the guest is about to end.
func (p *port) Close() error { return nil }
