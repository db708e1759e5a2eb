package kube

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// Launcher makes the pods of a run and starts programs in them. It is safe for concurrent use.
type Launcher struct {
	cluster *Cluster
	options Options
	program *sentProgram
	sending chan struct{} // holds one for each pod that the program is being sent to
	made    atomic.Bool   // a pod was, or may have been
	waits   waits
}

// NewLauncher checks the options. It asks the cluster nothing.
func NewLauncher(c *Cluster, o Options) (*Launcher, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	return &Launcher{cluster: c, options: o, waits: waits{say: o.Waiting}, program: &sentProgram{path: o.Binary}, sending: make(chan struct{}, sendAtOnce)}, nil
}

// Run is what the launcher's pods are labelled with.
func (l *Launcher) Run() RunID { return l.options.Run }

// Program is the path of netdelta in the pods.
func (l *Launcher) Program() string {
	if l.options.Image != "" {
		return programInImage
	}
	return programStreamed
}

// LivePod is a pod that is up, with netdelta in it.
type LivePod struct {
	launcher    *Launcher
	place       ContainerRef
	node        string
	addresses   []netip.Addr // of the pod
	hosts       []netip.Addr // of its node
	annotations map[string]string
	first, last uint16
}

var _ testbed.Pod = (*LivePod)(nil)

// Launch makes a pod, waits until it is up, and brings the program there. On error nothing of it is left.
func (l *Launcher) Launch(ctx context.Context, w Wish) (*LivePod, error) {
	pods := l.cluster.API.Pods(l.cluster.Namespace)
	manifest := l.Manifest(w)
	began := time.Now()
	l.made.Store(true)
	if l.options.Image == "" {
		go func() { _ = l.program.pack() }() // while the pod starts; who sends it hears of the error
	}
	made, err := create(ctx, pods, "pod", manifest)
	if err != nil {
		return nil, err
	}
	live, err := l.Adopt(ctx, made.Namespace, made.Name)
	if err != nil {
		return nil, errors.Join(err, l.cluster.deletePod(made.Namespace, made.Name))
	}
	if w.First != 0 {
		live.first, live.last = w.First, w.Last
	}
	l.options.Log("pod %s is up on %s after %s", live.Name(), live.Node(), time.Since(began).Round(time.Millisecond))
	return live, nil
}

// Adopt waits until a pod that somebody else made from a manifest of this launcher is up, and brings the program there.
func (l *Launcher) Adopt(ctx context.Context, namespace, name string) (*LivePod, error) {
	pod, err := l.await(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("wait for pod %s: %w", name, err)
	}
	live := &LivePod{
		launcher: l, node: pod.Spec.NodeName, annotations: pod.Annotations,
		place: ContainerRef{Namespace: namespace, Pod: name, Container: containerName, Program: l.Program(), UID: pod.UID},
		first: firstPort, last: firstPort + uint16(l.options.Ports) - 1,
	}
	for _, a := range pod.Status.PodIPs {
		if at, err := netip.ParseAddr(a.IP); err == nil {
			live.addresses = append(live.addresses, at)
		}
	}
	hosts := pod.Status.HostIPs
	if len(hosts) == 0 {
		hosts = []corev1.HostIP{{IP: pod.Status.HostIP}}
	}
	for _, a := range hosts {
		if at, err := netip.ParseAddr(a.IP); err == nil {
			live.hosts = append(live.hosts, at)
		}
	}
	if l.options.Image == "" {
		if err := l.deliver(ctx, live.place); err != nil {
			return nil, fmt.Errorf("bring netdelta to pod %s: %w", name, err)
		}
	}
	return live, nil
}

// Name implements testbed.Pod.
func (p *LivePod) Name() string { return p.place.Pod }

// Node implements testbed.Pod.
func (p *LivePod) Node() string { return p.node }

// Address implements testbed.Pod: the IPv4 address, where the pod has one.
func (p *LivePod) Address() netip.Addr {
	if a := p.AddressOf(result.IPv4); a.IsValid() {
		return a
	}
	return p.AddressOf(result.IPv6)
}

// AddressOf is the pod's address of a version of IP, not valid where it has none.
func (p *LivePod) AddressOf(family result.Family) netip.Addr { return ofFamily(p.addresses, family) }

// HostAddress is the address of the pod's node of a version of IP, not valid where it has none.
func (p *LivePod) HostAddress(family result.Family) netip.Addr { return ofFamily(p.hosts, family) }

// ofFamily is the first of the addresses that belongs to a version of IP.
func ofFamily(all []netip.Addr, family result.Family) netip.Addr {
	first, _ := gather.First(all, func(a netip.Addr) bool { return a.Is6() == (family == result.IPv6) })
	return first
}

// Ports implements testbed.Pod.
func (p *LivePod) Ports() (first, last uint16) { return p.first, p.last }

// Program is the path of netdelta in the pod.
func (p *LivePod) Program() string { return p.place.Program }

// Start implements testbed.Pod: a command whose path is this program, or the program for pods, runs the copy that the pod was given.
// The context covers the start, not the life of the process.
func (p *LivePod) Start(ctx context.Context, cmd testbed.Command) (testbed.Process, error) {
	return p.start(ctx, cmd)
}

func (p *LivePod) start(ctx context.Context, cmd testbed.Command) (*stream, error) {
	if self, err := os.Executable(); cmd.Path == "" || cmd.Path == p.launcher.options.Binary || err == nil && cmd.Path == self {
		cmd.Path = p.place.Program
	}
	return start(ctx, p.launcher.cluster, p.place, cmd)
}

// Delete removes the pod and waits until it is gone. It is idempotent.
func (p *LivePod) Delete() error {
	return p.launcher.cluster.deletePod(p.place.Namespace, p.place.Pod)
}

// order is the command line by which netdelta starts a program in a pod. Where the user of this machine keeps files means nothing there.
func order(at ContainerRef, cmd testbed.Command) []string {
	env := slices.DeleteFunc(slices.Clone(cmd.Env), func(e string) bool {
		return strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "XDG_CACHE_HOME=")
	})
	return task(at, inside.Start, inside.Order{Path: cmd.Path, Args: cmd.Args, Env: env, CPUs: cmd.CPUs})
}

// task is the command line of a task in a pod. Parameters that are not text are given to it as JSON.
func task(at ContainerRef, name string, params ...any) []string {
	argv := []string{at.Program, inside.Verb, name}
	for _, p := range params {
		text, is := p.(string)
		if !is {
			data, _ := json.Marshal(p) // plain data, for which it never fails
			text = string(data)
		}
		argv = append(argv, text)
	}
	return argv
}

// started reads what a program that is started says first.
func started(line []byte) (pid int, err error) {
	var s inside.Started
	if err := json.Unmarshal(line, &s); err != nil {
		return 0, fmt.Errorf("what is there is not this netdelta: it said %.80q; give the image of this version, or --base-image", line)
	}
	if s.Error != "" {
		return 0, errors.New(s.Error)
	}
	return s.PID, nil
}

// Keys of labels and annotations on every object that netdelta makes in a cluster.
const (
	// LabelManagedBy marks an object as netdelta's: its value is ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelRun is the run that an object belongs to, as text of a RunID.
	LabelRun = "netdelta.dev/run"
	// LabelRole is what an object is for: one of the roles below.
	LabelRole = "netdelta.dev/role"
	// LabelTestbed tells the testbeds of a run apart: a number, counted from 0 in each run.
	LabelTestbed = "netdelta.dev/testbed"
	// LabelPod tells the pods of a testbed apart: a number, counted from 0 in each testbed. Services select by it.
	LabelPod = "netdelta.dev/pod"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "netdelta"
)

// Role is the value of LabelRole.
type Role string

// The roles of objects.
const (
	RoleClient    Role = "client"     // a pod that sends what is measured
	RoleServer    Role = "server"     // a pod that answers
	RoleService   Role = "service"    // a Service in front of a server
	RoleNodeAgent Role = "node-agent" // a pod that looks at the devices of its node
	RoleNode      Role = "node"       // a privileged pod that makes nodes of testbeds on its node
	RolePolicy    Role = "policy"     // a NetworkPolicy
	RoleVolume    Role = "volume"     // a claim for a volume
	RoleLease     Role = "lease"      // the Lease that says that a run is under way
)

// RunID tells the runs in a cluster apart: eight hexadecimal digits.
type RunID string

// runIDBytes is the length of a RunID before it is written as digits.
const runIDBytes = 4

// NewRunID draws one.
func NewRunID() RunID {
	var b [runIDBytes]byte
	_, _ = rand.Read(b[:]) // it never fails
	return RunID(hex.EncodeToString(b[:]))
}

// ParseRunID reads one, as it stands in a label. The error says what is wrong with the text.
func ParseRunID(text string) (RunID, error) {
	if len(text) != hex.EncodedLen(runIDBytes) || strings.Trim(text, "0123456789abcdef") != "" {
		return "", fmt.Errorf("run %q: %w", text, errRunID)
	}
	return RunID(text), nil
}

var errRunID = errors.New("need eight digits of 0-9 and a-f")

// Labels mark an object of the run. The map is the caller's, to add to.
func (r RunID) Labels(role Role) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelRun: string(r), LabelRole: string(role)}
}

// Name makes the name of an object of the run: netdelta-RUN-rest.
func (r RunID) Name(rest string) string { return "netdelta-" + string(r) + "-" + rest }

// Selector is the label selector of all objects of the run.
func (r RunID) Selector() string { return LabelRun + "=" + string(r) + "," + SelectAll }

// SelectAll is the label selector of all objects of all runs.
const SelectAll = LabelManagedBy + "=" + ManagedBy + "," + LabelRun
