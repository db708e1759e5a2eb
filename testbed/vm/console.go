package vm

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"netdelta/internal/procfile"
	"netdelta/internal/tail"
)

// consoleKept is how much of the console is kept, and qemuKept how much of what QEMU says.
const (
	consoleKept = 64 << 10
	qemuKept    = 4 << 10
)

// console keeps the end of what a guest's kernel says.
type console struct {
	from *os.File
	qemu *tail.Tail
	text *tail.Tail
	over chan struct{}
}

func newConsole(from *os.File) *console {
	return &console{from: from, qemu: tail.New(qemuKept), text: tail.New(consoleKept), over: make(chan struct{})}
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

// processorTime is what a process has used so far, in hundredths of a second.
func processorTime(pid int) time.Duration {
	_, fields, err := procfile.Stat("/proc", pid)
	if err != nil {
		return 0
	}
	user, err1 := strconv.Atoi(fields[procfile.StatUser])
	system, err2 := strconv.Atoi(fields[procfile.StatUser+1])
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
