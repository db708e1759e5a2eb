package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	insight "netdelta/insight/hops"
	"netdelta/internal/netns"
	probe "netdelta/probe/hops"
	"netdelta/report/hops"
)

// watch traces the connections of a running program, which are not touched, and prints their hops.
func (env *environment) watch(ctx context.Context, o hopsOptions) error {
	own, err := spaceOf(o.pid)
	if err != nil {
		return usageError{fmt.Errorf("--pid %d: %w", o.pid, err)}
	}
	tracer, err := probe.Open(probe.Options{First: o.port, Last: o.port, Room: watchRoom})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.err, "watching TCP port %d of process %d for %v\n", o.port, o.pid, o.lasting)
	events, lost, err := watched(ctx, tracer, o.lasting)
	if err := errors.Join(err, tracer.Close()); err != nil {
		return err
	}
	known, err := mapSpaces(events, o.pid)
	if err != nil {
		return err
	}
	events = probe.OfSpace(events, own)
	if len(events) == 0 {
		return withStatus(exitNothing, fmt.Errorf("process %d moved nothing over TCP port %d in %v", o.pid, o.port, o.lasting))
	}
	seen := insight.Watch(events, known, o.port)
	seen.Lost = lost
	if o.json {
		return writeJSON(env.out, seen)
	}
	return hops.WriteWatch(env.out, seen)
}

// watchRoom is for how many events of each processor there is room while a program is watched.
const watchRoom = 1 << 18

func watched(ctx context.Context, tracer *probe.Tracer, lasting time.Duration) ([]probe.Event, int, error) {
	if err := tracer.Start(); err != nil {
		return nil, 0, err
	}
	select {
	case <-time.After(lasting):
	case <-ctx.Done(): // what was seen so far is shown
	}
	return tracer.Stop()
}

// spaceOf is the number of a process's network namespace.
func spaceOf(pid int) (uint32, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"), &s); err != nil {
		return 0, fmt.Errorf("find its network namespace: %w", err)
	}
	return uint32(s.Ino), nil
}

// mapSpaces names the namespaces in which something was seen, each by a process in it, and their devices: this program's own
// is the host, and the watched program's is named after that program. Namespaces that have vanished or have no process keep
// their numbers.
func mapSpaces(events []probe.Event, watched int) (probe.Names, error) {
	names := probe.Names{Spaces: map[uint32]string{}, Devices: map[probe.Address]string{}}
	wanted := map[uint32]bool{}
	for _, e := range events {
		wanted[e.Space] = true
	}
	processes, err := processes(os.Getpid(), watched)
	if err != nil {
		return names, err
	}
	for i, pid := range processes {
		space, err := spaceOf(pid)
		if err != nil || !wanted[space] {
			continue // it has ended, or has nothing to do with it
		}
		delete(wanted, space)
		names.Spaces[space] = "host"
		if i > 0 {
			names.Spaces[space] = nameOf(pid)
		}
		devices, err := devicesOf(pid)
		if err != nil {
			continue // gone with the process
		}
		for index, name := range devices {
			names.Devices[probe.Address{Space: space, Device: index}] = name
		}
	}
	return names, nil
}

// processes lists the running ones, after those that come first.
func processes(first ...int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for the processes of namespaces: %w", err)
	}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			first = append(first, pid)
		}
	}
	return first, nil
}

// nameOf names a namespace by a process in it.
func nameOf(pid int) string {
	comm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return "process " + strconv.Itoa(pid)
	}
	return fmt.Sprintf("%s[%d]", strings.TrimSpace(string(comm)), pid)
}

// devicesOf lists the devices of a process's network namespace.
func devicesOf(pid int) (map[uint32]string, error) {
	space, err := netns.Of(pid)
	if err != nil {
		return nil, err
	}
	devices := map[uint32]string{}
	err = space.DoOnce(func() error {
		all, err := net.Interfaces()
		for _, i := range all {
			devices[uint32(i.Index)] = i.Name
		}
		return err
	})
	return devices, errors.Join(err, space.Close())
}
