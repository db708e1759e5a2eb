package supervisor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/internal/machine"
	"netdelta/internal/owner"
	"netdelta/internal/procfile"
	"netdelta/testbed/rpc"
)

// Folder is where a cluster keeps its files. A machine may have several clusters, each in a folder of its own.
type Folder string

// Own is the folder of this user's cluster: netdelta/cluster in the folder for caches.
func Own() (Folder, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the cluster's files: %w", err)
	}
	return Folder(filepath.Join(cache, "netdelta", "cluster")), nil
}

func (f Folder) path(parts ...string) string {
	return filepath.Join(append([]string{string(f)}, parts...)...)
}

// Kubeconfig is the file by which the cluster is reached, while it is up.
func (f Folder) Kubeconfig() string { return f.path("kubeconfig") }

// Log is the log of the last cluster's supervisor. The logs of its nodes are in the same folder.
func (f Folder) Log() string { return f.path("logs", "supervisor.log") }

// control is where the supervisor is spoken to.
func (f Folder) control() string { return f.path("control") }

// Mark is in the names of this folder's control groups, so that they are not confused with another cluster's.
func (f Folder) Mark() string {
	sum := sha256.Sum256([]byte(f))
	return fmt.Sprintf("netdelta-cluster-%x", sum[:4])
}

// make makes the folder, which no other user may look into: it holds the keys to the cluster.
func (f Folder) make() error {
	if err := owner.CheckFolder(string(f), "XDG_CACHE_HOME"); err != nil {
		return err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return fmt.Errorf("make the cluster's folder: %w", err)
	}
	return os.Chmod(string(f), 0o700)
}

// lock waits until no other program brings this cluster up or down. The lock ends with unlock, or with the program.
func (f Folder) lock() (unlock func() error, err error) {
	if err := f.make(); err != nil {
		return nil, err
	}
	if unlock, err = owner.Lock(context.Background(), f.path("lock")); err != nil {
		err = fmt.Errorf("lock the cluster's folder %s: %w", f, err)
	}
	return unlock, err
}

// sweep removes what an ended cluster left: its control groups, and its files but for the logs.
func (f Folder) sweep() error {
	if err := machine.RemoveControlGroup(f.Mark(), groupPatience); err != nil {
		return err
	}
	for _, name := range []string{"kubeconfig", "control", "nodes"} {
		if err := os.RemoveAll(f.path(name)); err != nil {
			return fmt.Errorf("remove what an ended cluster left: %w", err)
		}
	}
	return nil
}

// groupPatience is how long the kernel may take to let go of a control group whose last process has ended.
const groupPatience = 10 * time.Second

// hierarchies are where this machine's control groups of version 1 are mounted. The error says so where there is none with what a
// kubelet needs.
func hierarchies() ([]string, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return nil, err
	}
	var found []string
	controllers := map[string]string{}
	for _, m := range mounts {
		if m.FSType == "cgroup" {
			found = append(found, m.MountPoint)
			maps.Copy(controllers, m.SuperOptions)
		}
	}
	for _, need := range []string{"cpu", "cpuset", "memory", "pids", "devices"} {
		if _, there := controllers[need]; !there {
			return nil, fmt.Errorf("unsupported: the test cluster needs control groups of version 1 and this machine mounts none for %s: boot it with systemd.unified_cgroup_hierarchy=0, or use another machine", need)
		}
	}
	return found, nil
}

// makeGroups makes a control group for each node, mark/NODE in each hierarchy, and returns where a kubelet finds it.
func makeGroups(mark, node string) (string, error) {
	roots, err := hierarchies()
	if err != nil {
		return "", err
	}
	for _, root := range roots {
		for _, group := range []string{mark, filepath.Join(mark, node)} {
			folder := filepath.Join(root, group)
			if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", fmt.Errorf("make the control group of node %s: %w", node, err)
			}
			if err := inheritSets(folder); err != nil {
				return "", err
			}
		}
	}
	return filepath.Join("/", mark, node), nil
}

// unifiedGroup makes a node's control group of version 2, mark/NODE, and returns its folder.
func unifiedGroup(mark, node string) (string, error) {
	mounts, err := procfs.GetMounts()
	if err != nil {
		return "", err
	}
	for _, m := range mounts {
		if m.FSType == "cgroup2" {
			folder := filepath.Join(m.MountPoint, mark, node)
			return folder, os.MkdirAll(folder, 0o755)
		}
	}
	return "", errors.New("unsupported: Cilium attaches programs to control groups of version 2 and this machine mounts none: " +
		"mount them in addition to version 1, as systemd's hybrid hierarchy does, or use another CNI")
}

// inheritSets gives a group the processors and memory of the one above it: a new one has none, and can't be entered.
func inheritSets(folder string) error {
	for _, set := range []string{"cpuset.cpus", "cpuset.mems"} {
		above, err := os.ReadFile(filepath.Join(filepath.Dir(folder), set))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another hierarchy
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, set), above, 0o644); err != nil {
			return fmt.Errorf("fill %s of a control group: %w", set, err)
		}
	}
	return nil
}

// ErrDown is matched by errors about a cluster that is not up.
var ErrDown = errors.New("no cluster is up: 'make cluster-up' starts one")

// Up brings a cluster up unless it is up already, and has one that is up become as c says, except for the number of its nodes.
// What happens is written to tell. This program, started anew with the arguments run and then a Config in JSON, has to call Run.
func Up(ctx context.Context, f Folder, c Config, run []string, tell io.Writer) (err error) {
	asked := c
	c.Workers = cmp.Or(c.Workers, defaultWorkers)
	c = c.complete()
	if err := c.check(); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	switch _, err := f.Status(); {
	case err == nil:
		fmt.Fprintln(tell, "a cluster is up already")
		return f.Switch(asked)
	case !errors.Is(err, ErrDown):
		return err
	}
	if _, err := hierarchies(); err != nil {
		return err
	}
	if err := errors.Join(f.sweep(), os.RemoveAll(f.path("logs")), os.MkdirAll(f.path("logs"), 0o700)); err != nil {
		return err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := f.start(ctx, append(run, string(config)), tell); err != nil {
		// What did not come up is taken away, but for its logs.
		return errors.Join(fmt.Errorf("bring the cluster up: %w; the logs are in %s", err, filepath.Dir(f.Log())), f.end())
	}
	return nil
}

// start starts the supervisor and follows it until the cluster is up.
func (f Folder) start(ctx context.Context, run []string, tell io.Writer) error {
	log, err := os.OpenFile(f.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = read.Close() }()
	cmd := exec.Command("/proc/self/exe", run...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	started := cmd.Start()
	if err := errors.Join(started, write.Close()); err != nil {
		return fmt.Errorf("start the supervisor (it takes root): %w", err)
	}
	// It is this program's child as long as this program runs.
	go func() { _ = cmd.Wait() }()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	return errors.Join(follow(read, tell), ctx.Err())
}

// follow reads what a supervisor says to its end.
func follow(r io.Reader, tell io.Writer) error {
	for d := json.NewDecoder(r); ; {
		var n news
		if err := d.Decode(&n); err != nil {
			return fmt.Errorf("the supervisor has ended: %w", err)
		}
		switch {
		case n.Error != "":
			return errors.New(n.Error)
		case n.Done:
			return nil
		}
		fmt.Fprintln(tell, n.Line)
	}
}

// call connects to the supervisor. The error matches ErrDown where there is none.
func (f Folder) call() (*net.UnixConn, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: f.control(), Net: "unix"})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, ErrDown
	}
	if err != nil {
		return nil, fmt.Errorf("call the cluster's supervisor: %w", err)
	}
	return c, nil
}

// order gives the supervisor an order and waits until it is carried out. It returns what the cluster then is.
func (f Folder) order(op string, args any) (Config, error) {
	c, err := f.call()
	if err != nil {
		return Config{}, err
	}
	conn := rpc.NewConn(c, true)
	defer func() { _ = conn.Close() }()
	return rpc.Ask[Config](context.Background(), conn, op, args)
}

// Status says what the cluster is. The error matches ErrDown where none is up.
func (f Folder) Status() (Config, error) { return f.order(opStatus, nil) }

// Switch brings another CNI, mode of kube-proxy, state of Multus or policy engine into effect and returns when it is. Pods live on;
// those made before keep the MTU and the networks that they were made with.
func (f Folder) Switch(to Config) error {
	_, err := f.order(opSwitch, to)
	return err
}

// Load gives the images of an archive to all nodes, as docker save or an OCI layout in a tar file has them.
func (f Folder) Load(archive string) error {
	archive, err := filepath.Abs(archive)
	if err == nil {
		_, err = f.order(opLoad, archive)
	}
	return err
}

// Service stops, kills, starts or restarts a program of a node. A program that is killed or stopped stays so until it is started.
func (f Folder) Service(do, node, service string) error {
	if known := []string{opStop, opKill, opStart, opRestart}; !slices.Contains(known, do) {
		return unknown("order", do, known)
	}
	_, err := f.order(do, serviceOrder{node, service})
	return err
}

// Down ends the cluster, if one is up, and removes what it, or one that was killed, left.
func Down(f Folder) (err error) {
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return f.end()
}

// endPatience is how long the processes of a cluster may take to end once they are killed.
const endPatience = 30 * time.Second

func (f Folder) end() error {
	c, err := f.call()
	switch {
	case errors.Is(err, ErrDown):
		return f.sweep()
	case err != nil:
		return err
	}
	defer func() { _ = c.Close() }()
	_, fd, err := owner.Peer(c)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end the supervisor: %w", err)
	}
	// It counts as ended once everything in its namespace has.
	if !owner.Ended(fd, endPatience) {
		return fmt.Errorf("the cluster's processes have not ended within %s of being killed", endPatience)
	}
	return f.sweep()
}

// NodeProcess is the process 1 of a node, by its number on this machine. The error matches ErrDown where no cluster is up.
func (f Folder) NodeProcess(name string) (int, error) {
	c, err := f.call()
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	supervisor, fd, err := owner.Peer(c)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	var names []string
	for _, pid := range procfile.Children(supervisor) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		arguments := strings.Split(string(line), "\x00")
		if err != nil || len(arguments) < 3 || arguments[1] != NodeVerb {
			continue
		}
		if arguments[2] == name {
			return pid, nil
		}
		names = append(names, arguments[2])
	}
	return 0, unknown("node", name, names)
}
