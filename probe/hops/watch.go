package hops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"netdelta/internal/netns"
	"netdelta/internal/procfile"
)

// watchRoom is for how many events of each processor there is room while a program is watched.
const watchRoom = 1 << 18

// Watched is what the connections of a running program did.
type Watched struct {
	Events []Event // of its namespace; none where it moved nothing
	Names  Names   // of the namespaces and devices that they passed
	Lost   int     // events that there was no room for
}

// Watch traces the connections to and from a port of a running process, which are not touched, for a while or until ctx ends.
func Watch(ctx context.Context, pid int, port uint16, lasting time.Duration) (w Watched, err error) {
	own, err := spaceOf(pid)
	if err != nil {
		return w, err
	}
	tracer, err := Open(Options{First: port, Last: port, Room: watchRoom})
	if err != nil {
		return w, err
	}
	if err = tracer.Start(); err == nil {
		select {
		case <-time.After(lasting):
		case <-ctx.Done(): // what was seen so far is shown
		}
		w.Events, w.Lost, err = tracer.Stop()
	}
	if err := errors.Join(err, tracer.Close()); err != nil {
		return w, err
	}
	if w.Names, err = mapSpaces(w.Events, pid); err != nil {
		return w, err
	}
	w.Events = OfSpace(w.Events, own)
	return w, nil
}

// spaceOf is the number of a process's network namespace.
func spaceOf(pid int) (uint32, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"), &s); err != nil {
		return 0, fmt.Errorf("find the network namespace of process %d: %w", pid, err)
	}
	return uint32(s.Ino), nil
}

// mapSpaces names the namespaces in which something was seen, each by a process in it, and their devices: this program's own
// is the host, and the watched program's is named after that program. Namespaces that have vanished or have no process keep
// their numbers.
func mapSpaces(events []Event, watched int) (Names, error) {
	names := Names{Spaces: map[uint32]string{}, Devices: map[Address]string{}}
	wanted := map[uint32]bool{}
	for _, e := range events {
		wanted[e.Space] = true
	}
	processes, err := procfile.Processes("/proc")
	if err != nil {
		return names, fmt.Errorf("look for the processes of namespaces: %w", err)
	}
	for i, pid := range append([]int{os.Getpid(), watched}, processes...) {
		space, err := spaceOf(pid)
		if err != nil || !wanted[space] {
			continue // it has ended, or has nothing to do with it
		}
		delete(wanted, space)
		names.Spaces[space] = "host"
		if i > 0 {
			names.Spaces[space] = "process " + strconv.Itoa(pid)
			if name, _, err := procfile.Stat("/proc", pid); err == nil {
				names.Spaces[space] = fmt.Sprintf("%s[%d]", name, pid)
			}
		}
		devices, err := devicesOf(pid)
		if err != nil {
			continue // gone with the process
		}
		for _, d := range devices {
			names.Devices[Address{Space: space, Device: uint32(d.Index)}] = d.Name
		}
	}
	return names, nil
}

// devicesOf lists the devices of a process's network namespace.
func devicesOf(pid int) (devices []net.Interface, err error) {
	space, err := netns.Of(pid)
	if err != nil {
		return nil, err
	}
	err = space.DoOnce(func() (err error) {
		devices, err = net.Interfaces()
		return err
	})
	return devices, errors.Join(err, space.Close())
}
