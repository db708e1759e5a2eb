package vm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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

// lookPause is how often a tape is looked at for more.
const lookPause = 20 * time.Millisecond

// tapes are what an exact guest writes onto in place of sockets: memory that takes everything at once. A socket that is full makes
// the guest's serial line wait until somebody on this machine has read from it, and the guest would notice how busy the machine is.
// What is written comes out of ours; ended says that no more will come.
func tapes(n int, ended <-chan struct{}) (ours, theirs []*os.File, err error) {
	defer func() {
		if err != nil {
			for _, f := range append(ours, theirs...) {
				err = errors.Join(err, f.Close())
			}
			err = fmt.Errorf("make a way to the guest: %w", err)
			ours, theirs = nil, nil
		}
	}()
	for range n {
		fd, err := unix.MemfdCreate("netdelta-tape", unix.MFD_CLOEXEC)
		if err != nil {
			return ours, theirs, err
		}
		theirs = append(theirs, os.NewFile(uintptr(fd), "tape"))
		again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return ours, theirs, err
		}
		tape := os.NewFile(uintptr(again), "tape")
		r, w, err := os.Pipe()
		if err != nil {
			return ours, theirs, errors.Join(err, tape.Close())
		}
		ours = append(ours, r)
		go play(tape, w, ended)
	}
	return ours, theirs, nil
}

// play hands on what is written onto a tape, until the end.
func play(tape, to *os.File, ended <-chan struct{}) {
	defer func() { _, _ = tape.Close(), to.Close() }()
	at, over := int64(0), false
	b := make([]byte, 64<<10)
	for {
		n, err := tape.ReadAt(b, at)
		at += int64(n)
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return // the reader is gone
			}
			continue
		}
		if over || !errors.Is(err, io.EOF) {
			return
		}
		select {
		case <-ended:
			over = true // but for what was written since the last look
		case <-time.After(lookPause):
		}
	}
}

// onto is the option that has QEMU write onto a descriptor that it inherits.
func onto(id string, fd int) string {
	return "file,id=" + id + ",path=/proc/self/fd/" + strconv.Itoa(fd) + ",append=on"
}
