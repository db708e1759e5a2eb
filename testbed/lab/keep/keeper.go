// Package keep holds labs up in background processes, so that one may look into them from any shell, later. Each lab has a
// process of its own, the keeper, that holds its namespaces and answers on a Unix socket in a folder of the user. While it lives
// it holds a lock on a file there: a process that gets the lock knows that the lab is gone.
package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/rootless"
	"netdelta/testbed/rpc"
)

const (
	// lockFD is the descriptor on which a keeper inherits the lock of its lab.
	lockFD = 3
	// requestPatience is how long a client may take to say what it wants.
	requestPatience = 5 * time.Second
	// glance is how often a keeper sees whether its lab is still recorded.
	glance = 2 * time.Second
)

// keeper holds a lab up.
type keeper struct {
	order
	folder  *Folder
	lock    *os.File
	lab     *lab.Testbed
	started time.Time
	// last gets what answers the client that asked for the end.
	last chan func(error)
}

// Hold is what a keeper does: it reads an order from in, builds the lab, says on out whether it is up, and holds it until it is
// asked to end, ctx is done, or the record of the lab has been removed, so that no client could reach it. Start starts it.
func Hold(ctx context.Context, in io.Reader, out io.Writer, driver testbed.Provider) error {
	k := &keeper{started: time.Now(), last: make(chan func(error), 1)}
	if err := json.NewDecoder(in).Decode(&k.order); err != nil {
		return fmt.Errorf("keep a lab: read what it is to be: %w", err)
	}
	if err := CheckName(k.Name); err != nil {
		return fmt.Errorf("keep a lab: %w", err)
	}
	k.folder = &Folder{k.Folder}
	unix.CloseOnExec(lockFD)
	k.lock = os.NewFile(lockFD, "lock")
	listener, err := k.open(ctx, driver)
	if err != nil {
		return json.NewEncoder(out).Encode(rpc.Request{}.Reply(nil, recognised(err)))
	}
	// Once the keeper can be reached, it tells the process that started it, which then stops waiting.
	err = json.NewEncoder(out).Encode(rpc.Request{}.Reply(k.status(), nil))
	if err == nil {
		err = letGo()
	}
	if err != nil {
		return errors.Join(err, k.close(listener))
	}
	go k.serve(ctx, listener)
	answer := k.await(ctx)
	err = k.close(listener)
	if answer != nil {
		answer(err)
	}
	return err
}

// open builds the lab and makes the socket.
func (k *keeper) open(ctx context.Context, driver testbed.Provider) (*net.UnixListener, error) {
	if !current(k.lock, k.folder.file(k.Name, lockEnd)) {
		return nil, errors.New("keep a lab: descriptor 3 is not the lab's lock: this is for netdelta lab up to call")
	}
	if _, entered := rootless.Entered(); entered {
		if err := rootless.Verify(); err != nil {
			return nil, err
		}
	}
	opened, err := driver.Open(ctx, k.Spec)
	if err != nil {
		return nil, err
	}
	var ok bool
	if k.lab, ok = opened.(*lab.Testbed); !ok {
		return nil, errors.Join(fmt.Errorf("keep a lab: can't keep a testbed of kind %s", driver.Kind()), opened.Close())
	}
	listener, err := at(k.folder.file(k.Name, socketEnd), func(address *net.UnixAddr) (*net.UnixListener, error) {
		return net.ListenUnix("unix", address)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep a lab: make its socket: %w", err), k.lab.Close())
	}
	listener.SetUnlinkOnClose(false) // its path leads nowhere by then
	return listener, nil
}

// at calls f with a short address for a socket's path: a socket's address holds a path of at most 107 bytes.
func at[T any](path string, f func(*net.UnixAddr) (T, error)) (T, error) {
	var none T
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return none, err
	}
	defer func() { _ = unix.Close(fd) }()
	return f(&net.UnixAddr{Net: "unix", Name: fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path))})
}

// letGo gives up the standard streams, which belong to the process that started this one.
func letGo() error {
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", os.DevNull, err)
	}
	defer func() { _ = unix.Close(null) }()
	for _, fd := range []int{0, 1} {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fmt.Errorf("let go of the standard streams: %w", err)
		}
	}
	return nil
}

// await returns when the lab is to end, with what answers the client that asked for it.
func (k *keeper) await(ctx context.Context) func(error) {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case answer := <-k.last:
			return answer
		case <-ctx.Done():
			return nil
		case <-tick.C:
			// Some systems empty the folder when the user logs out for the last time.
			if !current(k.lock, k.folder.file(k.Name, lockEnd)) {
				return nil
			}
		}
	}
}

// close removes the lab and its record.
func (k *keeper) close(listener *net.UnixListener) error {
	err := errors.Join(listener.Close(), k.lab.Close())
	if !current(k.lock, k.folder.file(k.Name, lockEnd)) {
		return errors.Join(err, k.lock.Close()) // the record, if any, is another lab's
	}
	return errors.Join(err, k.folder.forget(k.Name, k.lock))
}

// serve answers until the listener is closed.
func (k *keeper) serve(ctx context.Context, listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(requestPatience / 100) // there are no descriptors left, say
			continue
		}
		go k.talk(ctx, conn)
	}
}

// talk answers the requests of one client, who must say something within requestPatience.
func (k *keeper) talk(ctx context.Context, client *net.UnixConn) {
	if client.SetReadDeadline(time.Now().Add(requestPatience)) != nil {
		return
	}
	conn := rpc.NewConn(client, false)
	// used returns when the client has gone, which an answer is for.
	used := func() {
		select {
		case <-conn.Done():
		case <-time.After(requestPatience):
		}
	}
	_ = conn.Serve(func(stream *rpc.Stream, r rpc.Request) {
		_ = client.SetReadDeadline(time.Time{})
		switch r.Op {
		case opEnter:
			k.enter(stream, r, used)
		case opDown:
			k.down(stream, r, used)
		default:
			value, err := k.carryOut(ctx, r)
			stream.Answer(r, value, recognised(err))
		}
	}, nil)
}

// carryOut carries out the operations with nothing but an answer.
func (k *keeper) carryOut(ctx context.Context, r rpc.Request) (any, error) {
	switch r.Op {
	case rpc.OpHello:
		return rpc.Greet(), nil
	case opStatus:
		return k.status(), nil
	case opSwap:
		return rpc.Call(r, func(network string) (Status, error) {
			if err := k.lab.Swap(ctx, network); err != nil {
				return Status{}, err
			}
			return k.status(), nil
		})
	}
	return nil, r.Unknown()
}

// enter names the namespaces of a pod or node, and keeps them until the client has opened them.
func (k *keeper) enter(stream *rpc.Stream, r rpc.Request, used func()) {
	_, err := rpc.Call(r, func(where string) (any, error) {
		return nil, k.lab.Within(where, func(fd int) error {
			own := fmt.Sprintf("/proc/%d/", os.Getpid())
			stream.Answer(r, entrance{User: own + "ns/user", Network: fmt.Sprintf("%sfd/%d", own, fd), Mark: k.lab.Mark()}, nil)
			used()
			return nil
		})
	})
	if err != nil {
		stream.Answer(r, nil, recognised(err))
	}
}

// down has the keeper end, and returns when the client knows how that went.
func (k *keeper) down(stream *rpc.Stream, r rpc.Request, used func()) {
	told := make(chan struct{})
	answer := func(err error) {
		defer close(told)
		stream.Answer(r, nil, err)
		used() // the connection ends with the keeper
	}
	select {
	case k.last <- answer:
		<-told
	default:
		stream.Answer(r, nil, errors.New("the lab is ending already"))
	}
}

// recognised makes an *UnknownError of an error about an unknown name, so that clients know it from others.
func recognised(err error) error {
	var place *lab.NameError
	var unknown *network.UnknownError
	if errors.As(err, &place) || errors.As(err, &unknown) {
		return &UnknownError{err.Error()}
	}
	return err
}

func (k *keeper) status() Status {
	spec := k.lab.Spec()
	_, isRootless := rootless.Entered()
	s := Status{
		Name: k.Name, Network: spec.Network, Family: spec.Family, Nodes: spec.Nodes, Started: k.started, PID: os.Getpid(), Rootless: isRootless,
	}
	pods := k.lab.Pods()
	for _, p := range pods {
		port, _ := p.Ports()
		s.Pods = append(s.Pods, Pod{
			Name: p.Name(), Node: p.Node(), Address: p.Address().String(), Port: port,
			Reached: k.lab.Endpoint(pods[0], p, port).Addr().String(),
		})
	}
	if last := pods[len(pods)-1]; len(pods) > 1 {
		hops := gather.Each(k.lab.Path(pods[0], last, network.TCP), func(h network.Hop) string { return h.String() })
		s.Path = strings.Join(hops, " ")
	}
	return s
}
