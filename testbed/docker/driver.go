package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/nodeagent"
	"netdelta/testbed/lab"
)

const (
	// label is on all containers that hold a namespace.
	label = "netdelta"
	// repository is the name of the image that they are made of.
	repository = "netdelta"
	// ports is how many ports the servers of a pod can listen on. Each published one may cost a process of the engine's.
	ports = 16
	// firstPort and lastPort are where these are looked for.
	firstPort, lastPort = 20100, 29999
)

// Options are how an engine is used.
type Options struct {
	// Program is the engine's own: a name or a path; "" is docker.
	Program string
	// Held is the program that containers are made of, which ends with its standard input; "" is machine.SentProgram.
	Held string
	// Agent is this program's path, for agents in the containers' namespaces; "" is the executable.
	Agent string
}

// Driver opens testbeds on the networks of an engine, and labs, since their networks may stand in the same run. It is safe for concurrent
// use.
type Driver struct {
	*lab.Driver
	engine   engine
	options  Options
	networks []network.Network
	image    string
	host     *container // in the host's namespace
	podman   bool

	mu    sync.Mutex
	made  int
	next  uint16 // where free ports are looked for
	idle  map[holding][]*container
	all   []*container
	agent *nodeagent.Agent // in the host's namespace
	procs *lab.Processes   // of that agent
}

// holding is what containers are the same in.
type holding struct{ joins, published string }

var _ testbed.Provider = (*Driver)(nil)

// New asks the engine for its networks, and gives it the image that containers are made of. Close removes what was made.
func New(ctx context.Context, labs *lab.Driver, o Options) (*Driver, error) {
	d := &Driver{Driver: labs, engine: engine{cmp.Or(o.Program, "docker")}, options: o, next: uint16(firstPort + os.Getpid()%50*ports), idle: map[holding][]*container{}}
	if os.Geteuid() != 0 {
		return nil, errors.New("testbed docker works in the network namespaces of containers, which takes root: run it by sudo")
	}
	listed, err := d.engine.networks(ctx)
	if err != nil {
		return nil, err
	}
	d.networks = catalogue(listed)
	version, err := d.engine.ask(ctx, nil, "--version")
	if err != nil {
		return nil, err
	}
	d.podman = strings.Contains(version, "podman")
	if d.options.Agent == "" {
		if d.options.Agent, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program's file: %w", err)
		}
	}
	if d.procs, err = lab.NewProcesses(); err != nil {
		return nil, err
	}
	if err := d.load(ctx); err != nil {
		return nil, err
	}
	if d.host, err = d.take(ctx, holding{joins: engineName(Host)}); err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return d, nil
}

// load gives the engine an image of one file, unless it has it.
func (d *Driver) load(ctx context.Context) (err error) {
	path := d.options.Held
	if path == "" {
		if path, err = machine.SentProgram(); err != nil {
			return err
		}
	}
	if err := machine.CheckStatic(path); err != nil {
		return err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the program that containers are made of: %w", err)
	}
	d.image = fmt.Sprintf("%s:%.12x", repository, sha256.Sum256(program))
	if _, err := d.engine.ask(ctx, nil, "image", "inspect", "--format", "{{.Id}}", d.image); err == nil {
		return nil
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	err = w.WriteHeader(&tar.Header{Name: machine.AgentName, Mode: 0o755, Size: int64(len(program))})
	if err == nil {
		_, err = w.Write(program)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("pack the image that containers are made of: %w", err)
	}
	entry := fmt.Sprintf("ENTRYPOINT [\"/%s\", \"agent\"]", machine.AgentName)
	_, err = d.engine.ask(ctx, &files, "import", "--change", entry, "-", d.image)
	return err
}

// Kind implements testbed.Provider.
func (d *Driver) Kind() string { return Kind }

// Capabilities implements testbed.Provider: they are a lab's, with the engine's networks first.
func (d *Driver) Capabilities() testbed.Capabilities {
	all := d.Driver.Capabilities()
	all.Networks, all.Usual = append(slices.Clone(d.networks), all.Networks...), []string{Host, Bridge}
	return all
}

// Supports implements testbed.Provider: it makes the containers of a testbed on the network, which later testbeds use.
func (d *Driver) Supports(ctx context.Context, spec testbed.Spec) error {
	if !strings.HasPrefix(spec.Network, Prefix) {
		return d.Driver.Supports(ctx, spec)
	}
	if err := d.possible(spec); err != nil {
		return err
	}
	spec.Nodes, spec.PodsPerNode = 1, 2
	t, err := d.open(ctx, spec)
	if err != nil {
		return err
	}
	return t.Close()
}

// possible says what no engine can do.
func (d *Driver) possible(spec testbed.Spec) error {
	feature := "network " + spec.Network
	if spec.Network == none {
		return &testbed.UnsupportedError{Feature: feature, Need: "a network in the container", Fix: "take another network of the engine"}
	}
	if _, err := network.Find(d.networks, spec.Network); err != nil {
		return err
	}
	switch {
	case spec.PodsOutlive:
		return &testbed.UnsupportedError{
			Feature: feature + " under live swaps", Need: "pods that move to another network", Fix: "run it without --blocks, and without workloads that a cluster serves",
		}
	case spec.Conditions.Plain() != (result.Conditions{}):
		return &testbed.UnsupportedError{
			Feature: feature + " under a condition", Need: "a network that netdelta may set up",
			Fix: "measure conditions by --testbed lab, or give the engine's network other options (docker network create --opt) and a name of its own",
		}
	}
	return nil
}

// Open implements testbed.Provider.
func (d *Driver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if !strings.HasPrefix(spec.Network, Prefix) {
		return d.Driver.Open(ctx, spec)
	}
	t, err := d.open(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("open a testbed on %s: %w", spec.Network, err)
	}
	return t, nil
}

func (d *Driver) open(ctx context.Context, spec testbed.Spec) (*Testbed, error) {
	switch {
	case spec.Nodes < 1 || spec.PodsPerNode < 1:
		return nil, fmt.Errorf("%d nodes with %d pods each: need at least 1 of both", spec.Nodes, spec.PodsPerNode)
	case spec.Nodes > 1:
		return nil, &testbed.UnsupportedError{Feature: "placement cross-node", Need: "a second machine", Fix: "measure it with --placement same-node"}
	case spec.Link.Rate != 0:
		return nil, &testbed.UnsupportedError{Feature: "a rate of the links", Need: "links that netdelta has made", Fix: "measure it with --testbed lab"}
	}
	if err := d.possible(spec); err != nil {
		return nil, err
	}
	if spec.Family = cmp.Or(spec.Family, result.IPv4); spec.Family != result.IPv4 && spec.Family != result.IPv6 {
		return nil, fmt.Errorf("family %q: need ipv4 or ipv6", spec.Family)
	}
	procs, err := lab.NewProcesses()
	if err != nil {
		return nil, err
	}
	t := &Testbed{driver: d, spec: spec, procs: procs}
	if err := t.hold(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// take is an idle container: one that was given back, or a new one.
func (d *Driver) take(ctx context.Context, h holding) (*container, error) {
	d.mu.Lock()
	if n := len(d.idle[h]); n > 0 {
		c := d.idle[h][n-1]
		d.idle[h] = d.idle[h][:n-1]
		d.mu.Unlock()
		return c, nil
	}
	d.made++
	name := fmt.Sprintf("netdelta-%d-%d", os.Getpid(), d.made)
	first, err := d.choosePorts()
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var more []string
	if h.published != "" {
		own := fmt.Sprintf("%s:%d-%d:%d-%d", h.published, first, first+ports-1, first, first+ports-1)
		if strings.Contains(h.published, ":") {
			own = "[" + h.published + "]" + strings.TrimPrefix(own, h.published)
		}
		more = []string{"--publish", own + "/tcp", "--publish", own + "/udp"}
	}
	c, err := d.engine.hold(ctx, d.image, name, h.joins, more...)
	if err != nil {
		return nil, err
	}
	c.first = first
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, c)
	return c, nil
}

// giveBack keeps a container for the next testbed.
func (d *Driver) giveBack(h holding, c *container) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle[h] = append(d.idle[h], c)
}

// choosePorts finds a range of ports that no socket listens on in the host's namespace, for one container alone.
func (d *Driver) choosePorts() (first uint16, err error) {
	if d.host == nil {
		return 0, nil // no server runs in the first container
	}
	err = d.host.space.Do(func() error {
		for ; d.next+ports <= lastPort; d.next += ports {
			taken := false
			for port := d.next; port < d.next+ports; port++ {
				taken = taken || !free(netip.AddrPortFrom(netip.IPv4Unspecified(), port))
			}
			if !taken {
				first = d.next
				d.next += ports
				return nil
			}
		}
		return fmt.Errorf("there are no %d ports free in a row between %d and %d on the host", ports, firstPort, lastPort)
	})
	return first, err
}

// free says whether no socket listens on a port of an address, in the calling thread's namespace.
func free(at netip.AddrPort) bool {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return false
	}
	_ = l.Close() // nothing was written to it
	return true
}

// onHost is the agent that looks at the host's devices and packets.
func (d *Driver) onHost(ctx context.Context, host testbed.Pod) (*nodeagent.Agent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.agent != nil && d.agent.Alive() {
		return d.agent, nil
	}
	var err error
	d.agent, err = nodeagent.Start(ctx, host, d.options.Agent)
	return d.agent, err
}

// Close ends all containers and removes the image, unless another run uses it. It is idempotent.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.agent != nil {
		_ = d.agent.Close() // how it ends is no news
		d.agent = nil
	}
	errs := make([]error, len(d.all)+1)
	var ending sync.WaitGroup
	for i, c := range d.all {
		ending.Go(func() { errs[i] = c.Close() })
	}
	errs[len(d.all)] = d.procs.Close()
	ending.Wait()
	d.all, d.idle = nil, map[holding][]*container{}
	_, _ = d.engine.ask(ctx, nil, "image", "rm", d.image) // others may use it
	return errors.Join(errs...)
}
