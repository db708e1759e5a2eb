package vm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

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
