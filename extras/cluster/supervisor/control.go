package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"netdelta/internal/gather"
	"netdelta/internal/suggest"
	"netdelta/testbed/rpc"
)

// What a supervisor is asked for. It answers with its Config.
const (
	opStatus = "status"
	opSwitch = "switch" // to a Config
	opLoad   = "load"   // an archive of images: a path of the machine
	// The rest is about a serviceOrder.
	opStop    = "stop"
	opKill    = "kill"
	opStart   = "start"
	opRestart = "restart"
)

// serviceOrder names a program of a node.
type serviceOrder struct{ Node, Service string }

// news is what a supervisor says while it brings a cluster up, a line of JSON each: what it does, and at last how it ended.
type news struct {
	Line  string `json:",omitempty"`
	Done  bool   `json:",omitempty"`
	Error string `json:",omitempty"`
}

// Run is the program of a supervisor, which is process 1 of a namespace of process numbers: it brings a cluster up, with the programs
// in the folders parts and product and the Config in JSON, tells what it does to told as lines that Up reads, and holds the cluster until it is killed.
func Run(f Folder, parts, product, config string, told *os.File) error {
	if os.Getpid() != 1 {
		return errors.New("this is not process 1 of a cluster: it is started by 'make cluster-up', not by hand")
	}
	say := json.NewEncoder(told)
	s := &supervisor{folder: f, parts: parts, product: product, tell: func(format string, arguments ...any) {
		_ = say.Encode(news{Line: fmt.Sprintf(format, arguments...)}) // an end of the reader shows below
	}}
	err := json.Unmarshal([]byte(config), &s.config)
	if err == nil {
		err = s.open(context.Background())
	}
	last := news{Done: true}
	if err != nil {
		last.Error = err.Error()
	}
	// Who asked for the cluster may have been killed meanwhile: then it ends too.
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
			conn := rpc.NewConn(c, false)
			_ = conn.Serve(func(stream *rpc.Stream, r rpc.Request) {
				<-up
				one.Lock()
				defer one.Unlock()
				_, err := s.carryOut(context.Background(), r)
				stream.Answer(r, s.config, err)
			}, nil)
			_ = conn.Close()
		}()
	}
}

func (s *supervisor) carryOut(ctx context.Context, r rpc.Request) (any, error) {
	switch r.Op {
	case opStatus:
		return nil, nil
	case opSwitch:
		return rpc.Call(r, func(to Config) (any, error) { return nil, s.change(ctx, to) })
	case opLoad:
		return rpc.Call(r, func(archive string) (any, error) { return nil, s.loadImages(archive) })
	case opStop, opKill, opStart, opRestart:
		return rpc.Call(r, func(o serviceOrder) (any, error) { return nil, s.service(r.Op, o) })
	}
	return nil, r.Unknown()
}

// change brings another CNI, mode of kube-proxy, state of Multus or policy engine into effect; "" leaves what there is.
func (s *supervisor) change(ctx context.Context, to Config) error {
	to, err := s.config.with(to)
	if err != nil {
		return err
	}
	err = s.changeNetwork(ctx, to.CNI)
	if err == nil {
		err = replace(&s.config.Proxy, to.Proxy, func(p Proxy) error { return s.switchProxy(ctx, p) })
	}
	if err == nil {
		err = replace(&s.config.Multus, to.Multus, func(m Multus) error { return s.switchMultus(ctx, m) })
	}
	if err == nil {
		err = replace(&s.config.Policy, to.Policy, func(p Policy) error { return s.switchPolicy(ctx, p) })
	}
	return err
}

// changeNetwork brings another CNI into effect. Where that fails, the one before is brought back, and the error says whether it was.
func (s *supervisor) changeNetwork(ctx context.Context, to CNI) error {
	if to == s.config.CNI && !s.adrift {
		return nil
	}
	exchange := func(from, to CNI) error {
		if err := s.leaveNetwork(ctx, from); err != nil {
			return err
		}
		return s.enterNetwork(ctx, to)
	}
	err := exchange(s.config.CNI, to)
	if s.adrift = err != nil; !s.adrift {
		s.config.CNI = to
		return nil
	}
	err = fmt.Errorf("bring %s into effect: %w", to, err)
	back := exchange(to, s.config.CNI)
	if s.adrift = back != nil; s.adrift {
		return errors.Join(err, fmt.Errorf("go back to %s: %w: pods may not reach each other until a CNI is in effect: "+
			"ask for one anew ('cluster switch --cni %s'), or end the cluster", s.config.CNI, back, s.config.CNI))
	}
	return fmt.Errorf("%w; %s is in effect again", err, s.config.CNI)
}

// replace calls bring for a value that is not in effect yet, and notes it when it is; "" leaves what there is.
func replace[T ~string](now *T, to T, bring func(T) error) error {
	if to == "" || to == *now {
		return nil
	}
	err := bring(to)
	if err == nil {
		*now = to
	}
	return err
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
func (s *supervisor) service(do string, o serviceOrder) error {
	at := slices.IndexFunc(s.members, func(m *member) bool { return m.name == o.Node })
	if at < 0 {
		nodes := gather.Each(s.members, func(m *member) string { return m.name })
		return unknown("node", o.Node, nodes)
	}
	m := s.members[at]
	if running := s.running(m); !slices.Contains(running, o.Service) {
		return unknown("service", o.Service, running)
	}
	if do != opStart {
		if err := m.node.StopService(o.Service, do == opKill); err != nil {
			return err
		}
	}
	if do == opStop || do == opKill {
		return nil
	}
	return s.start(m, o.Service)
}

func unknown(what, name string, known []string) error {
	if near, ok := suggest.Nearest(name, known); ok {
		return fmt.Errorf("unknown %s %q: did you mean %s?", what, name, near)
	}
	return fmt.Errorf("unknown %s %q: there are %q", what, name, known)
}
