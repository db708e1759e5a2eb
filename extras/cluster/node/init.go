package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"netdelta/internal/reaper"
	"netdelta/testbed/rpc"
)

// Path is where programs of a node are looked for: the cluster's, then the machine's.
const Path = PartsFolder + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// PartsFolder is where a node sees the programs of the cluster.
const PartsFolder = "/opt/netdelta/bin"

// Main is the program of process 1 of a node. It carries out requests that come from in and answers them on out. It returns when in
// ends: the node ends with it.
func Main(in io.Reader, out io.WriteCloser) error {
	i := &initial{reaper: reaper.New(), services: map[string]*service{}}
	return rpc.NewConn(ends{in, out}, false).Serve(func(s *rpc.Stream, r rpc.Request) {
		value, err := i.carryOut(r)
		s.Answer(r, value, err)
	}, nil)
}

// prepare makes the node's surroundings.
func prepare(s Spec) error {
	if os.Getpid() != 1 {
		return errors.New("this is not process 1 of a node: it is started by 'make cluster-up', not by hand")
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := enterRoot(s); err != nil {
		return fmt.Errorf("make the root of node %s: %w", s.Name, err)
	}
	// The node does not inherit the environment of the program that started the cluster.
	os.Clearenv()
	for name, value := range map[string]string{"PATH": Path, "HOME": "/root", "HOSTNAME": s.Name} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for _, folder := range []string{LogFolder, "/run/lock"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for link, target := range s.Links {
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(target, link)); err != nil {
			return err
		}
	}
	if err := writeFiles(s.Files); err != nil {
		return err
	}
	for _, setting := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		err := os.WriteFile("/proc/sys/net/"+setting, []byte("1\n"), 0o644)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return fmt.Errorf("have the node forward packets: %w", err)
		}
	}
	return nil
}

// writeFiles writes each file at once or not at all, since who reads it may be about to.
func writeFiles(files []File) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return err
		}
		fresh := f.Path + ".new"
		if err := os.WriteFile(fresh, f.Content, f.Mode); err != nil {
			return err
		}
		if err := os.Rename(fresh, f.Path); err != nil {
			return err
		}
	}
	return nil
}

// initial is process 1 of a node.
type initial struct {
	reaper *reaper.Reaper

	mu       sync.Mutex // held during a request
	services map[string]*service
}

func (i *initial) carryOut(r rpc.Request) (any, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.Op {
	case opPrepare:
		return rpc.Call(r, func(s Spec) (any, error) { return nil, prepare(s) })
	case opWrite:
		return rpc.Call(r, func(files []File) (any, error) { return nil, writeFiles(files) })
	case opStart:
		return rpc.Call(r, func(s Service) (any, error) { return nil, i.start(s) })
	case opStop, opKill:
		return rpc.Call(r, func(name string) (any, error) { return nil, i.stop(name, r.Op == opKill) })
	case opEnd:
		return rpc.Call(r, func(names []string) (any, error) {
			for _, name := range names {
				if i.services[name] == nil {
					continue
				}
				if err := i.stop(name, true); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
	case opRun:
		return rpc.Call(r, i.run)
	}
	return nil, r.Unknown()
}

func (i *initial) start(spec Service) error {
	if i.services[spec.Name] != nil {
		return fmt.Errorf("service %s runs already", spec.Name)
	}
	s, err := run(i.reaper, spec)
	if err != nil {
		return err
	}
	i.services[spec.Name] = s
	return nil
}

func (i *initial) stop(name string, now bool) error {
	s := i.services[name]
	if s == nil {
		return fmt.Errorf("service %q does not run", name)
	}
	s.stop(now)
	delete(i.services, name)
	return nil
}

// run runs a command to its end and returns what it printed.
func (i *initial) run(args []string) (string, error) {
	var printed bytes.Buffer
	cmd := command(args, nil, &printed)
	if err := i.reaper.Start(cmd); err != nil {
		return "", err
	}
	if err := i.reaper.Wait(cmd); err != nil {
		return "", fmt.Errorf("%s: %w: %s", args[0], err, &printed)
	}
	return printed.String(), nil
}

// command is a program that writes to output.
func command(args, env []string, output io.Writer) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = output, output
	return cmd
}
