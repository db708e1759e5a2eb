package ceph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool"
)

// OSDs is how many there are unless more or fewer are asked for, each in a pod of its own, and copies how often each block is kept, as far as
// there are OSDs. The monitor is in the first pod.
const (
	OSDs   = 3
	copies = 3
)

// Key is workload.Cluster's: one cluster with so many OSDs serves all parameters.
func Key(osds int) string {
	if osds == OSDs {
		return "ceph"
	}
	return fmt.Sprintf("ceph with %d OSDs", osds)
}

// monitor is the name of the monitor's process.
const monitor = "mon.a"

// osd is the name of an OSD's process.
func osd(id int) string { return "osd." + strconv.Itoa(id) }

// Programs are those that the cluster needs, without fio.
func Programs() []workload.Program {
	return []workload.Program{
		{Name: "ceph-mon", Package: "ceph-mon"},
		{Name: "monmaptool", Package: "ceph-base"},
		{Name: "ceph-osd", Package: "ceph-osd"},
		{Name: "ceph", Package: "ceph-common"},
		{Name: "rbd", Package: "ceph-common"},
	}
}

// Memory is what a cluster takes at most, in all pods together.
func Memory(osds int) unit.Bytes { return unit.Bytes(osds) * (homeSize + processes/OSDs) }

// server is the daemons of one pod.
type server struct {
	home    *daemon.Sandbox
	at      workload.Member
	version string

	mu      sync.Mutex
	daemons map[string]*daemon.Daemon // by name: mon.a, osd.0
}

// Serve starts the daemons of a pod, and returns when they take part. The last pod's also makes the image and fills it, for
// which it waits for all others.
func Serve(ctx context.Context, at workload.Member) (engine.Server, error) {
	fail := func(err error) (engine.Server, error) {
		return nil, fmt.Errorf("start pod %d of a Ceph cluster: %w", at.Pod, err)
	}
	if err := check(at.Peers); err != nil {
		return fail(err)
	}
	if at.Pod < 0 || at.Pod >= len(at.Peers) {
		return fail(fmt.Errorf("there is none: it has pods 0 to %d", len(at.Peers)-1))
	}
	home, err := daemon.Open(homeSize)
	if err != nil {
		return fail(err)
	}
	s := &server{home: home, at: at, daemons: map[string]*daemon.Daemon{}}
	if err := s.start(ctx); err != nil {
		return fail(errors.Join(err, s.Close()))
	}
	return s, nil
}

// check returns an error for peers that can't be a cluster.
func check(peers []netip.Addr) error {
	if len(peers) == 0 {
		return errors.New("it has no pods")
	}
	return nil
}

// start makes everything that the pod has, and waits until it is of use.
func (s *server) start(ctx context.Context) error {
	if err := s.home.Write(folder+"/ceph.conf", config(s.home.Path, s.at.Peers, s.at.Pod), 0o644, ""); err != nil {
		return err
	}
	if err := s.home.Folder(folder+"/osd", ""); err != nil {
		return err
	}
	if err := s.readVersion(ctx); err != nil {
		return err
	}
	disk := make(chan error, 1)
	go func() { disk <- s.makeDisk(ctx) }() // takes a second, and no monitor
	err := s.join(ctx)
	if err = errors.Join(err, <-disk); err != nil {
		return err
	}
	if err := s.launch(osd(s.at.Pod)); err != nil {
		return err
	}
	if err := s.await(ctx, osd(s.at.Pod), s.osdUp); err != nil {
		return err
	}
	if s.at.Pod == len(s.at.Peers)-1 {
		return makeImage(ctx, s.home)
	}
	return nil
}

// join gives the pod's OSD its place in the cluster; in the first pod, there is none before its monitor runs.
func (s *server) join(ctx context.Context) error {
	if s.at.Pod == 0 {
		if err := s.makeMonitor(ctx); err != nil {
			return err
		}
		if err := s.launch(monitor); err != nil {
			return err
		}
		if err := s.await(ctx, monitor, s.monitorLeads); err != nil {
			return err
		}
	}
	_, err := run(ctx, s.home, "ceph", "osd", "new", osdUUID(s.at.Pod), strconv.Itoa(s.at.Pod))
	return err
}

// makeMonitor makes the monitor's store.
func (s *server) makeMonitor(ctx context.Context) error {
	if err := s.home.Folder(folder+"/mon", ""); err != nil {
		return err
	}
	_, err := run(ctx, s.home, "monmaptool", "--create", "--fsid", fsid, "--addv", "a", monitorAddress(s.at.Peers), place(s.home, "monmap"))
	if err != nil {
		return err
	}
	_, err = run(ctx, s.home, "ceph-mon", "-i", "a", "--mkfs", "--monmap", place(s.home, "monmap"))
	return err
}

// makeDisk makes what the OSD takes for its disk.
func (s *server) makeDisk(ctx context.Context) error {
	id := strconv.Itoa(s.at.Pod)
	_, err := run(ctx, s.home, "ceph-osd", "-i", id, "--mkfs", "--osd-uuid", osdUUID(s.at.Pod), "--no-mon-config")
	return err
}

// launch starts a daemon, which must not be running.
func (s *server) launch(name string) error {
	kind, id, _ := strings.Cut(name, ".")
	d, err := s.home.Start(daemon.Spec{
		Name: "ceph-" + name, Path: "ceph-" + kind, Args: []string{"-i", id, "-f"}, Env: environment(s.home),
		Signal: syscall.SIGKILL, // there is nothing to save
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.daemons[name] = d
	return nil
}

// pollEvery is how often a daemon is asked whether it is ready.
const pollEvery = 100 * time.Millisecond

// await waits until nothing ails a daemon that was started. Most of the time its socket is not there yet.
func (s *server) await(ctx context.Context, name string, ready func(context.Context) error) error {
	return daemon.Until(ctx, s.daemon(name), pollEvery, ready)
}

// daemon is the one with a name.
func (s *server) daemon(name string) *daemon.Daemon {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.daemons[name]
}

// names are the pod's daemons, the monitor first.
func (s *server) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.daemons))
}

// Totals implements engine.Server: the cluster counts nothing itself.
func (s *server) Totals() engine.Totals { return engine.Totals{} }

// Close implements engine.Server.
func (s *server) Close() error { return s.home.Close() }

// oldest is the first major version that has the second version of the messenger's protocol.
const oldest = "14"

// readVersion finds out which version of Ceph is installed.
func (s *server) readVersion(ctx context.Context) error {
	said, err := run(ctx, s.home, "ceph-osd", "--version")
	if err != nil {
		return err
	}
	s.version, err = version(string(said))
	return err
}

// version is what is in "ceph version 16.2.15 (618f44...) pacific (stable)".
func version(said string) (string, error) {
	rest, found := strings.CutPrefix(said, "ceph version ")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch {
	case !found || number == "" || number[0] < '0' || number[0] > '9':
		return "", fmt.Errorf("ceph-osd says that its version is %.60q, which is none; is it another program?", said)
	case tool.Older(number, oldest):
		return "", fmt.Errorf("version %s of Ceph is too old: install %s or newer", number, oldest)
	}
	return number, nil
}

// environment has a program of Ceph read the home's configuration, and not the machine's.
func environment(h *daemon.Sandbox) []string {
	return []string{
		"CEPH_CONF=" + place(h, "ceph.conf"), "CEPH_ARGS=",
		// Who starts again in a process of the same number is somebody else.
		"CEPH_USE_RANDOM_NONCE=1",
	}
}

// run runs a program of Ceph to its end.
func run(ctx context.Context, h *daemon.Sandbox, program string, arguments ...string) ([]byte, error) {
	return h.Run(ctx, daemon.Spec{Path: program, Args: arguments, Env: environment(h)})
}
