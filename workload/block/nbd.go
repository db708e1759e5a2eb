package block

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool"
	"netdelta/workload/tool/fio"
)

// nbdServer is the name of the server's program.
const nbdServer = "nbd-server"

// export is the name of what the server offers, and of the file behind it.
const export = "disk"

// nbd is the store of the network block device: one server, which keeps its blocks in memory.
func nbd() store {
	return store{
		name:     "nbd",
		programs: []workload.Program{{Name: nbdServer, Package: "nbd-server"}},
		memory:   func(p load) unit.Bytes { return unit.Bytes(p.servers()) * (exportSize(p) + serverRoom) },
		serve:    serveNBD,
		attach:   attachNBD,
		cluster: &cluster{
			shape: func(p load) (key string, pods int) { return fmt.Sprintf("nbd of %d servers", p.servers()), p.servers() },
			ports: []uint16{nbdPort},
			serve: func(ctx context.Context, p load, at workload.Member) (engine.Server, error) {
				return serveNBD(ctx, p, netip.AddrPortFrom(at.Peers[at.Pod], nbdPort), at.CPU)
			},
			attach: func(ctx context.Context, _ *daemon.Sandbox, at workload.Member) (fio.Target, error) {
				var servers []netip.AddrPort
				for i, peer := range at.Peers {
					port := uint16(nbdPort)
					if i == 0 {
						port = cmp.Or(at.Port, nbdPort)
					}
					servers = append(servers, netip.AddrPortFrom(peer, port))
				}
				return attachNBDs(ctx, servers)
			},
		},
	}
}

// nbdPort is the port of servers that are started once for all cells: NBD's own.
const nbdPort = 10809

// serverRoom is what the server takes in addition to its blocks: its configuration and processes, one for each connection.
const serverRoom = 32 * unit.MiB

// imageSize is how many bytes of blocks the server has. More than caches hold takes no longer to read, since all of it lies in
// memory; what counts is that there are enough blocks to choose among.
func imageSize(p load) unit.Bytes { return max(64*unit.MiB, 16*p.Block) }

// exportSize is how many bytes of blocks a server has: one that is started once for all cells has enough for blocks of any size.
func exportSize(p load) unit.Bytes {
	if p.clustered() {
		p.Block = mostBlock
	}
	return imageSize(p)
}

// attachNBD finds out that a server answers.
func attachNBD(ctx context.Context, _ load, server netip.AddrPort) (fio.Target, error) {
	return attachNBDs(ctx, []netip.AddrPort{server})
}

// attachNBDs is attachNBD for several servers, each of which has blocks of its own.
func attachNBDs(ctx context.Context, servers []netip.AddrPort) (fio.Target, error) {
	t := fio.Target{Engine: "nbd"}
	for _, s := range servers {
		if err := greet(ctx, s); err != nil {
			return t, err
		}
		t.Places = append(t.Places, fmt.Sprintf("uri=nbd://%s/%s", s, export))
	}
	return t, nil
}

// magic is how a server begins; flags follow it.
const magic = "NBDMAGICIHAVEOPT"

// greet connects to a server and hears its greeting.
func greet(ctx context.Context, server netip.AddrPort) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server.String())
	if err != nil {
		return fmt.Errorf("connect to nbd-server at %s: %w", server, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written to it
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	heard := make([]byte, len(magic)+2)
	if _, err := io.ReadFull(conn, heard); err != nil {
		return fmt.Errorf("hear from nbd-server at %s: %w", server, errors.Join(err, context.Cause(ctx)))
	}
	if !strings.HasPrefix(string(heard), magic) {
		return fmt.Errorf("hear from nbd-server at %s: it begins with %q, which is not how a server of NBD does; another program has the port", server, heard)
	}
	return nil
}

// nbdDaemon is a server with its blocks.
type nbdDaemon struct {
	home    *daemon.Sandbox
	listen  netip.AddrPort
	cpu     int
	version string
	disk    result.Disk
	flushes bool // clients may have it make lasting what they wrote
}

// serveNBD measures the storage, and starts a server on it.
func serveNBD(ctx context.Context, p load, listen netip.AddrPort, cpu int) (_ engine.Server, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("block: nbd-server at %s: %w", listen, err)
		}
	}()
	if err := daemon.PortFree(ctx, listen); err != nil {
		return nil, err
	}
	size := exportSize(p)
	home, err := daemon.Open(size + unit.MiB)
	if err != nil {
		return nil, err
	}
	s := &nbdDaemon{home: home, listen: listen, cpu: cpu, flushes: p.Sync > 0 || p.clustered()}
	if err := s.open(ctx, size, p); err != nil {
		return nil, errors.Join(err, home.Close())
	}
	return s, nil
}

func (s *nbdDaemon) open(ctx context.Context, size unit.Bytes, p load) (err error) {
	if s.version, err = nbdVersion(ctx, s.home); err != nil {
		return err
	}
	if err := fillImage(ctx, s.home, size); err != nil {
		return err
	}
	if s.disk, err = measureDisk(ctx, s.home, s.home.Path(export), p, s.cpu); err != nil {
		return err
	}
	return s.start(ctx)
}

// nbdVersion is the version of the server that is installed.
func nbdVersion(ctx context.Context, home *daemon.Sandbox) (string, error) {
	said, err := home.Run(ctx, daemon.Spec{Path: nbdServer, Args: []string{"-V"}})
	if err != nil {
		return "", fmt.Errorf("ask nbd-server for its version: %w", err)
	}
	version, found := strings.CutPrefix(strings.TrimSpace(string(said)), "This is nbd-server version ")
	switch {
	case !found:
		return "", fmt.Errorf("nbd-server says that its version is %.60q, which is none; is it another program?", said)
	case tool.Older(version, "3"): // before it, clients chose exports by port alone
		return "", fmt.Errorf("nbd-server %s is too old: install 3.0 or newer", version)
	}
	return version, nil
}

// fillPart is how much of the image is written at once, so that a start that is given up ends soon.
const fillPart = 8 << 20

// fillImage writes the blocks, which all differ, so that nothing is left out on the way from them to the network.
func fillImage(ctx context.Context, home *daemon.Sandbox, size unit.Bytes) error {
	noise := rand.NewChaCha8([32]byte([]byte("blocks that all differ, by size.")))
	part := make([]byte, fillPart)
	_, _ = noise.Read(part) // it never fails
	for at := int64(0); at < int64(size); at += fillPart {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		for i := 0; i < fillPart; i += leastBlock { // each has its place in it
			binary.LittleEndian.PutUint64(part[i:], uint64(at)+uint64(i))
		}
		err := home.Do(func() error {
			f, err := os.OpenFile(home.Path(export), os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(part[:min(fillPart, int64(size)-at)], at)
			return errors.Join(err, f.Close())
		})
		if err != nil {
			return fmt.Errorf("write %v of blocks into memory: %w; free some, or ask for smaller blocks", size, err)
		}
	}
	return nil
}

// startPatience bounds the start of the server. It listens at once, and answers when it has found a prime for ciphers that are not
// asked for: that takes a second of processor time, by chance several.
const startPatience = 50 * time.Second

// start starts the server and waits until it answers.
func (s *nbdDaemon) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("it is not ready after %v", startPatience))
	defer cancel()
	config := fmt.Sprintf("[generic]\nlistenaddr = %s\nport = %d\n[%s]\nexportname = %s\nflush = %v\n",
		s.listen.Addr(), s.listen.Port(), export, s.home.Path(export), s.flushes)
	if err := s.home.Write("nbd.conf", []byte(config), 0o644, ""); err != nil {
		return err
	}
	// It goes on in the background; told not to, it would serve one connection and end.
	_, err := s.home.Run(ctx, daemon.Spec{
		Name: nbdServer, Path: nbdServer, CPUs: daemon.Pin(s.cpu),
		Args: []string{"-C", s.home.Path("nbd.conf"), "-p", s.mark()},
	})
	if err != nil {
		return err
	}
	return daemon.Until(ctx, nil, 10*time.Millisecond, func(ctx context.Context) error { return greet(ctx, s.near()) })
}

// near is where the server is reached from its own pod.
func (s *nbdDaemon) near() netip.AddrPort {
	switch s.listen.Addr() {
	case netip.IPv4Unspecified():
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), s.listen.Port())
	case netip.IPv6Unspecified():
		return netip.AddrPortFrom(netip.IPv6Loopback(), s.listen.Port())
	}
	return s.listen
}

// mark is the file of the server's process number, whose name is like no other server's: by it the processes are known,
// which have left this one as their parent.
func (s *nbdDaemon) mark() string {
	return s.home.Path(fmt.Sprintf("nbd-server-of-%d-at-%d.pid", os.Getpid(), s.listen.Port()))
}

// Totals implements engine.Server. The server doesn't count.
func (s *nbdDaemon) Totals() engine.Totals {
	disk := s.disk
	return engine.Totals{Disk: &disk}
}

// Close implements engine.Server.
func (s *nbdDaemon) Close() error { return s.home.Close() }

// Health implements workload.DaemonServer: the server is well when it greets.
func (s *nbdDaemon) Health(ctx context.Context) workload.Health {
	h := workload.Health{Services: []result.Service{{Name: nbdServer, Version: s.version}}}
	processes, err := s.processes()
	for _, p := range processes {
		if stat, err := p.Stat(); err == nil { // a process of a connection may end meanwhile
			h.Services[0].Memory += unit.Bytes(stat.ResidentMemory())
		}
	}
	if err == nil {
		err = greet(ctx, s.near())
	}
	if err != nil {
		// Processes of connections outlive the one that listens.
		h.Unwell, h.Ended = err.Error(), errors.Is(err, errEnded) || errors.Is(err, syscall.ECONNREFUSED)
	}
	return h
}

// errEnded is matched by the error of a server that does not run any more.
var errEnded = errors.New("nbd-server has ended; what it had to say went to the system's log")

// processes are the server's: one that listens, and one for each connection. The error matches errEnded if there is none.
func (s *nbdDaemon) processes() ([]procfs.Proc, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("look for nbd-server: %w", err)
	}
	mine := slices.DeleteFunc(all, func(p procfs.Proc) bool {
		line, err := p.CmdLine()
		return err != nil || !slices.Contains(line, s.mark())
	})
	if len(mine) == 0 {
		return nil, errEnded
	}
	return mine, nil
}

// greetPatience is how long a server may take to greet before it is taken to hang. It takes microseconds, on a busy machine
// milliseconds.
const greetPatience = 3 * time.Second

// Restart implements workload.DaemonServer.
func (s *nbdDaemon) Restart(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, greetPatience)
	defer cancel()
	if greet(patient, s.near()) == nil {
		return nil
	}
	processes, err := s.processes()
	if err != nil && !errors.Is(err, errEnded) {
		return err
	}
	for _, p := range processes {
		// What is left of it: processes of connections whose other end is gone, or one that hangs.
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end what is left of nbd-server, process %d: %w", p.PID, err)
		}
	}
	// A process that was killed has the port until its end is over.
	vacated, cancelVacated := context.WithTimeout(ctx, startPatience)
	defer cancelVacated()
	err = daemon.Until(vacated, nil, 10*time.Millisecond, func(ctx context.Context) error {
		err := daemon.PortFree(ctx, s.listen)
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			return daemon.FinalError{Err: err}
		}
		return err
	})
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		return fmt.Errorf("block: nbd-server at %s: %w", s.listen, err)
	}
	return nil
}
