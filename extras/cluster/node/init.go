package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// path is where programs of a node are looked for: those of the cluster, then those of the machine.
const path = PartsFolder + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// PartsFolder is where a node sees the programs of the cluster.
const PartsFolder = "/opt/netdelta/bin"

// Main is the program of process 1 of a node. It reads requests from in and writes an answer to each to out. It returns when in
// ends: the node ends with it.
func Main(in io.Reader, out io.Writer) error {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	first, err := decode(requests)
	if err != nil {
		return fmt.Errorf("read what the node is: %w", err)
	}
	if first.Operation != opSpec || first.Spec == nil {
		return fmt.Errorf("the first request is %q, not what the node is", first.Operation)
	}
	err = prepare(*first.Spec)
	if answered := answers.Encode(reply("", err)); err != nil || answered != nil {
		return errors.Join(err, answered)
	}
	i := &initial{children: newChildren(), services: map[string]*service{}}
	for {
		r, err := decode(requests)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		output, err := i.carryOut(r)
		if err := answers.Encode(reply(output, err)); err != nil {
			return fmt.Errorf("answer a request: %w", err)
		}
	}
}

func reply(output string, err error) answer {
	a := answer{Output: output}
	if err != nil {
		a.Error = err.Error()
	}
	return a
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
	// The environment of who started the cluster is none of the node's business.
	os.Clearenv()
	for name, value := range map[string]string{"PATH": path, "HOME": "/root", "HOSTNAME": s.Name} {
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

// initial is process 1 once its node is made.
type initial struct {
	children *children
	services map[string]*service
}

func (i *initial) carryOut(r request) (output string, err error) {
	switch r.Operation {
	case opWrite:
		return "", writeFiles(r.Files)
	case opStart:
		return "", i.start(r.Service)
	case opStop, opKill:
		return "", i.stop(r.Name, r.Operation == opKill)
	case opRun:
		return i.run(r.Args)
	case opSpec:
		return "", errors.New("the node is made already")
	}
	return "", fmt.Errorf("unknown request %q", r.Operation)
}

func (i *initial) start(spec *Service) error {
	if spec == nil || spec.Name == "" || filepath.Base(spec.Name) != spec.Name {
		return errors.New("a service without a name")
	}
	if i.services[spec.Name] != nil {
		return fmt.Errorf("service %s runs already", spec.Name)
	}
	s, err := run(i.children, *spec)
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
func (i *initial) run(args []string) (output string, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = read.Close() }()
	_, ended, err := i.children.start(args, nil, write)
	if closed := write.Close(); err != nil || closed != nil {
		return "", errors.Join(err, closed)
	}
	printed, err := io.ReadAll(read)
	if err != nil {
		return "", err
	}
	if status := <-ended; status != 0 {
		return "", fmt.Errorf("%s: exit status %d, signal %d: %s", args[0], status.ExitStatus(), status.Signal(), printed)
	}
	return string(printed), nil
}
