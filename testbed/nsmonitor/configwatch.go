package nsmonitor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/result"
)

// ConfigWatch notices what changes in the configuration of a namespace. The kernel tells it of changes of devices, queueing
// disciplines, routes and firewall rules, so that it knows when they happened and costs nothing while nothing does; of sysctls it
// only knows in the end that they differ. It is safe for concurrent use.
type ConfigWatch struct {
	inside  func(func() error) error // runs a function in the namespace
	sysctls []string
	names   []string // of features

	mu      sync.Mutex
	last    Config
	noticed bool // that something changed, and not read since
	changes []result.ConfigChange
	err     error // of reading after a change

	notices []*os.File
	readers sync.WaitGroup
	closing sync.Once
	closed  error
}

// settleChanges is how long after a notice the configuration is read: one command may make many of them.
const settleChanges = 5 * time.Millisecond

// WatchConfig begins to watch a namespace, in which inside runs functions.
func WatchConfig(inside func(func() error) error, sysctls []string) (*ConfigWatch, error) {
	w := &ConfigWatch{inside: inside, sysctls: sysctls}
	err := inside(func() (err error) {
		if err = w.subscribe(); err != nil {
			return err
		}
		e, err := OpenEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		if w.names, err = e.featureNames("lo"); err != nil {
			return err
		}
		w.last, err = ReadConfig(sysctls, nil)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	for _, f := range w.notices {
		w.readers.Go(func() { w.follow(f) })
	}
	return w, nil
}

// subscribe opens the sockets on which the kernel tells of changes, in the namespace of the calling thread.
func (w *ConfigWatch) subscribe() error {
	for protocol, groups := range map[int][]int{
		unix.NETLINK_ROUTE: {
			unix.RTNLGRP_LINK, unix.RTNLGRP_TC, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
		},
		unix.NETLINK_NETFILTER: {unix.NFNLGRP_NFTABLES},
	} {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open a netlink socket: %w", err)
		}
		f := os.NewFile(uintptr(fd), "netlink")
		w.notices = append(w.notices, f)
		if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return fmt.Errorf("ask to be told of changes: %w", err)
		}
		for _, g := range groups {
			// A group that this kernel does not have tells nothing; what changed is still found in the end.
			if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("ask to be told of changes: %w", err)
			}
		}
	}
	return nil
}

// follow reads notices until the socket is closed.
func (w *ConfigWatch) follow(notices *os.File) {
	buffer := make([]byte, 16<<10)
	for {
		_, err := notices.Read(buffer)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil && !errors.Is(err, unix.ENOBUFS) { // there were more of them than room
			return
		}
		at := time.Now()
		w.mu.Lock()
		w.noticed = true
		w.mu.Unlock()
		time.Sleep(settleChanges)
		w.look(at)
	}
}

// look reads the configuration and keeps what changed, with when that was, as far as it is known.
func (w *ConfigWatch) look(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return
	}
	var now Config
	err := w.inside(func() (err error) {
		if !w.noticed {
			now, err = w.last.readUntold(w.sysctls)
			return err
		}
		now, err = ReadConfig(w.sysctls, w.last)
		return err
	})
	if err != nil {
		w.err = err
		return
	}
	for _, c := range w.last.Changes(now, w.names) {
		if _, sysctl := now[Setting{c.Device, c.Setting}]; !at.IsZero() && !(sysctl && slices.Contains(w.sysctls, c.Setting)) {
			c.At = at
		}
		w.changes = append(w.changes, c)
	}
	w.last, w.err, w.noticed = now, nil, false
}

// End reads once more what the kernel tells nothing of, and returns all that changed since the watch began.
func (w *ConfigWatch) End() ([]result.ConfigChange, error) {
	w.look(time.Time{})
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.changes), w.err
}

// Close ends the watch. It is idempotent.
func (w *ConfigWatch) Close() error {
	w.closing.Do(func() {
		w.mu.Lock()
		w.last = nil
		w.mu.Unlock()
		for _, f := range w.notices {
			w.closed = errors.Join(w.closed, f.Close())
		}
		w.readers.Wait()
	})
	return w.closed
}
