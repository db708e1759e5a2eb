package vm

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// consoleKept is how much of the console is kept, and qemuKept how much of what QEMU says.
const (
	consoleKept = 64 << 10
	qemuKept    = 4 << 10
)

// console keeps the end of what a guest's kernel says.
type console struct {
	from *os.File
	qemu ending
	text ending
	over chan struct{}
}

func newConsole(from *os.File) *console {
	return &console{from: from, qemu: ending{most: qemuKept}, text: ending{most: consoleKept}, over: make(chan struct{})}
}

func (c *console) read() {
	defer close(c.over)
	b := make([]byte, 4096)
	for {
		n, err := c.from.Read(b)
		_, _ = c.text.Write(b[:n]) // it takes everything
		if err != nil {
			return
		}
	}
}

// settle waits for the rest of what a guest that has ended said.
func (c *console) settle(ended <-chan struct{}) {
	select {
	case <-ended:
		select {
		case <-c.over:
		case <-time.After(time.Second):
		}
	default:
	}
}

// last are the last lines that are not empty.
func (c *console) last(most int) []string {
	var lines []string
	for line := range strings.SplitSeq(c.text.String(), "\n") {
		if line = strings.TrimRight(line, "\r "); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-most):]
}

// ending keeps the end of what is written to it.
type ending struct {
	most int
	mu   sync.Mutex
	kept []byte
}

func (e *ending) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(e.kept, b...)
	if extra := len(e.kept) - e.most; extra > 0 {
		e.kept = e.kept[extra:]
	}
	return len(b), nil
}

func (e *ending) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.TrimSpace(string(e.kept))
}

// processorTime is what a process has used so far, from /proc/PID/stat: its 14th and 15th field, in hundredths of a second.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12 // after the name
	if len(fields) <= system {
		return 0
	}
	u, err1 := strconv.Atoi(string(fields[user]))
	s, err2 := strconv.Atoi(string(fields[system]))
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(u+s) * 10 * time.Millisecond
}
