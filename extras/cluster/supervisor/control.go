package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/suggest"
)

// order is what a supervisor is told, by a line of JSON on a connection of its own. What is filled in depends on Do.
type order struct {
	Do      verb
	CNI     CNI    `json:",omitempty"`
	Proxy   Proxy  `json:",omitempty"`
	Policy  Policy `json:",omitempty"`
	Multus  Multus `json:",omitempty"`
	Archive string `json:",omitempty"` // of images: a path of the machine
	Node    string `json:",omitempty"`
	Service string `json:",omitempty"`
}

type verb string

const (
	doStatus  verb = "status"
	doSwitch  verb = "switch"
	doLoad    verb = "load"
	doStop    verb = "stop"
	doKill    verb = "kill"
	doStart   verb = "start"
	doRestart verb = "restart"
)

// news is what a supervisor says, a line of JSON each: what it does, and at last how it ended.
type news struct {
	Line   string  `json:",omitempty"`
	Config *Config `json:",omitempty"` // of a cluster that is up
	Done   bool    `json:",omitempty"`
	Error  string  `json:",omitempty"`
}

// Run is the program of a supervisor, which is process 1 of a namespace of process numbers: it brings a cluster up, tells what it
// does to told as lines that Up reads, and holds the cluster until it is killed.
func Run(f Folder, c Config, parts string, told *os.File) error {
	if os.Getpid() != 1 {
		return errors.New("this is not process 1 of a cluster: it is started by 'make cluster-up', not by hand")
	}
	say := json.NewEncoder(told)
	s := &supervisor{folder: f, config: c, parts: parts, tell: func(format string, arguments ...any) {
		_ = say.Encode(news{Line: fmt.Sprintf(format, arguments...)}) // an end of the reader shows below
	}}
	err := s.open(context.Background())
	last := news{Done: true}
	if err != nil {
		last.Error = err.Error()
	}
	// Who asked for the cluster may have been killed meanwhile: then nobody wants it.
	if err := errors.Join(err, say.Encode(last), told.Close()); err != nil {
		return err
	}
	select {}
}

// open listens for orders, so that the supervisor is found from the beginning, and brings the cluster up.
func (s *supervisor) open(ctx context.Context) error {
	if err := keepMounts(); err != nil {
		return err
	}
	l, err := net.Listen("unix", s.folder.control())
	if err != nil {
		return fmt.Errorf("listen for orders: %w", err)
	}
	up := make(chan struct{})
	go s.serve(l, up)
	if err := s.bringUp(ctx); err != nil {
		return err
	}
	s.tell = func(string, ...any) {}
	close(up)
	return nil
}

// serve carries orders out once the cluster is up, one after another.
func (s *supervisor) serve(l net.Listener, up <-chan struct{}) {
	var one sync.Mutex
	for {
		c, err := l.Accept()
		if err != nil {
			time.Sleep(pause)
			continue
		}
		go func() {
			defer func() { _ = c.Close() }()
			var o order
			if err := json.NewDecoder(c).Decode(&o); err != nil {
				return // somebody who only looks who listens here
			}
			<-up
			one.Lock()
			defer one.Unlock()
			say := json.NewEncoder(c)
			last := news{Done: true}
			if err := s.carryOut(context.Background(), o); err != nil {
				last.Error = err.Error()
			}
			last.Config = &s.config
			_ = say.Encode(last) // who gave the order may not have waited
		}()
	}
}

func (s *supervisor) carryOut(ctx context.Context, o order) error {
	switch o.Do {
	case doStatus:
		return nil
	case doSwitch:
		return s.change(ctx, o.CNI, o.Proxy, o.Multus, o.Policy)
	case doLoad:
		return s.loadImages(o.Archive)
	case doStop, doKill, doStart, doRestart:
		return s.service(o)
	}
	return fmt.Errorf("unknown order %q", o.Do)
}

// change brings another CNI, mode of kube-proxy, state of Multus or policy engine into effect; "" leaves what there is.
func (s *supervisor) change(ctx context.Context, c CNI, p Proxy, m Multus, y Policy) error {
	if err := s.config.allows(c); err != nil {
		return err
	}
	if c != "" && c != s.config.CNI {
		if err := s.leaveNetwork(ctx, s.config.CNI); err != nil {
			return err
		}
		if err := s.enterNetwork(ctx, c); err != nil {
			return err
		}
		s.config.CNI = c
	}
	if p != "" && p != s.config.Proxy {
		if err := s.switchProxy(ctx, p); err != nil {
			return err
		}
		s.config.Proxy = p
	}
	if m != "" && m != s.config.Multus {
		if err := s.switchMultus(ctx, m); err != nil {
			return err
		}
		s.config.Multus = m
	}
	if y != "" && y != s.config.Policy {
		if err := s.switchPolicy(ctx, y); err != nil {
			return err
		}
	}
	return nil
}

// loadImages gives the images of an archive to all nodes.
func (s *supervisor) loadImages(archive string) error {
	content, err := os.ReadFile(archive)
	if err != nil {
		return fmt.Errorf("read the archive of images: %w", err)
	}
	const name = "loaded.tar"
	kept := s.folder.path("nodes", "images", name)
	if err := os.WriteFile(kept, content, 0o600); err != nil {
		return err
	}
	for _, m := range s.members {
		if err := m.load(name); err != nil {
			return errors.Join(err, os.Remove(kept))
		}
	}
	return os.Remove(kept)
}

// service stops, kills or starts a program of a node: what faults are made of.
func (s *supervisor) service(o order) error {
	var at *member
	var names []string
	for _, m := range s.members {
		names = append(names, m.name)
		if m.name == o.Node {
			at = m
		}
	}
	if at == nil {
		return unknown("node", o.Node, names)
	}
	for _, known := range s.services(at) {
		if known.Name != o.Service {
			continue
		}
		if o.Do != doStart {
			if err := at.node.StopService(known.Name, o.Do == doKill); err != nil {
				return err
			}
		}
		if o.Do == doStop || o.Do == doKill {
			return nil
		}
		return at.node.StartService(known)
	}
	var services []string
	for _, known := range s.services(at) {
		services = append(services, known.Name)
	}
	return unknown("service", o.Service, services)
}

func unknown(what, name string, known []string) error {
	if near, ok := suggest.Nearest(name, known); ok {
		return fmt.Errorf("unknown %s %q: did you mean %s?", what, name, near)
	}
	return fmt.Errorf("unknown %s %q: there are %q", what, name, known)
}

// peer is the process that listens at a connection's other end, held by a file descriptor so that its number can't become
// another's.
func peer(c *net.UnixConn) (pid, fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	var failed error
	err = raw.Control(func(s uintptr) {
		var who *unix.Ucred
		if who, failed = unix.GetsockoptUcred(int(s), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		pid = int(who.Pid)
		fd, failed = unix.PidfdOpen(pid, 0)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, -1, fmt.Errorf("find the supervisor's process at %s: %w", filepath.Base(c.RemoteAddr().String()), err)
	}
	return pid, fd, nil
}
