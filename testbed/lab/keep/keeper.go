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
	// last gets the connection of the client that asked for the end.
	last chan *net.UnixConn
}

// Hold is what a keeper does: it reads an order from in, builds the lab, says on out whether it is up, and holds it until it is
// asked to end, ctx is done, or the record of the lab has been removed, so that no client could reach it. Start starts it.
func Hold(ctx context.Context, in io.Reader, out io.Writer, driver testbed.Provider) error {
	k := &keeper{started: time.Now(), last: make(chan *net.UnixConn, 1)}
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
		return json.NewEncoder(out).Encode(failure(err))
	}
	// Once the keeper can be reached, it tells the process that started it, which then stops waiting.
	status := k.status()
	if err := json.NewEncoder(out).Encode(answer{Status: &status}); err != nil {
		return errors.Join(err, k.close(listener))
	}
	if err := letGo(); err != nil {
		return errors.Join(err, k.close(listener))
	}
	go k.serve(ctx, listener)
	conn := k.await(ctx)
	err = k.close(listener)
	if conn != nil {
		_ = tell(conn, failure(err)) // it may have given up
		_ = conn.Close()
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

// await returns when the lab is to end, with the connection of the client that asked for it.
func (k *keeper) await(ctx context.Context) *net.UnixConn {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case conn := <-k.last:
			return conn
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
		go k.answer(ctx, conn)
	}
}

// answer carries out one request.
func (k *keeper) answer(ctx context.Context, conn *net.UnixConn) {
	var r request
	err := conn.SetReadDeadline(time.Now().Add(requestPatience))
	if err == nil {
		var files []*os.File
		files, err = hear(conn, &r)
		err = errors.Join(err, closeAll(files))
	}
	switch {
	case err != nil:
		err = fmt.Errorf("read the request: %w", err)
	case r.Do == tellStatus:
		status := k.status()
		err = tell(conn, answer{Greeting: rpc.Greet(), Status: &status})
	case r.Do == openDoor:
		err = k.lab.Within(r.Where, func(fd int) error { return k.handOver(conn, fd) })
	case r.Do == swap:
		if err = k.lab.Swap(ctx, r.Network); err == nil {
			status := k.status()
			err = tell(conn, answer{Greeting: rpc.Greet(), Status: &status})
		}
	case r.Do == end:
		select {
		case k.last <- conn:
			return
		default:
			err = errors.New("the lab is ending already")
		}
	default:
		err = fmt.Errorf("a keeper can't do %q", r.Do)
	}
	if err != nil {
		_ = tell(conn, failure(err)) // who asked may have gone
	}
	_ = conn.Close()
}

// handOver sends the namespaces.
func (k *keeper) handOver(conn *net.UnixConn, fd int) error {
	user, err := os.Open("/proc/self/ns/user")
	if err != nil {
		return fmt.Errorf("open the user namespace: %w", err)
	}
	return errors.Join(tell(conn, answer{Greeting: rpc.Greet(), Mark: k.lab.Mark()}, int(user.Fd()), fd), user.Close())
}

// failure is the answer after an error, or after none.
func failure(err error) answer {
	if err == nil {
		return answer{Greeting: rpc.Greet()}
	}
	var place *lab.NameError
	var unknown *network.UnknownError
	return answer{Greeting: rpc.Greet(), Error: err.Error(), Unknown: errors.As(err, &place) || errors.As(err, &unknown)}
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
		var hops []string
		for _, h := range k.lab.Path(pods[0], last, network.TCP) {
			hops = append(hops, h.String())
		}
		s.Path = strings.Join(hops, " ")
	}
	return s
}
