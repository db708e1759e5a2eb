package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
)

// Provider opens testbeds of one kind: lab, vm, kubernetes. It is safe for concurrent use.
type Provider interface {
	// Kind is the name that studies and --testbed have for it.
	Kind() string
	// Supports returns nil where the network of the spec can be built here with the spec's version of IP and under its
	// conditions, an *UnsupportedError where the kernel or machine lacks something, a *network.NotPossibleError where the
	// network can't be had under the conditions anywhere, and another error where the question could not be answered. Nodes,
	// pods and links don't matter; those that are not given are taken to be the least.
	Supports(ctx context.Context, spec Spec) error
	// Open builds the testbed. On error nothing of it is left behind.
	Open(ctx context.Context, spec Spec) (Testbed, error)
	// Capabilities are the same for as long as the provider.
	Capabilities() Capabilities
}

// Capabilities say what a provider's testbeds can do. The zero value is a provider that opens testbeds on nodes it does not own, and
// can do nothing else. A nil function means that the provider lacks the capability.
type Capabilities struct {
	// Networks are the networks that can join the pods.
	Networks []network.Network
	// Usual are networks that users compare first, the baseline before the others.
	Usual []string
	// SharesMachine says that pods run on the machine of this program, with its programs and in its memory.
	SharesMachine bool
	// PinsCPUs says that workloads can be given processors that are numbered as this machine's.
	PinsCPUs bool
	// BuildsLinks says that the links between nodes are made for the testbed, so that their MTU can be chosen.
	BuildsLinks bool
	// OwnsNodes says that nodes are made for the testbed. On nodes of others, ports may be taken and settings can't be chosen, a
	// server may be reachable some time after its start, and pods are scheduled, started and lost at any time.
	OwnsNodes bool
	// LosesNodes says that nodes are on machines that may be lost, and be there again when the next testbed is opened. It goes without
	// saying for nodes of others.
	LosesNodes bool
	// Costs are first guesses of how long the parts of a run take; nil is how long they take on this machine.
	Costs *Costs
	// Lacking returns the programs that a pod does not have, of the given names or paths. It may make a pod for the purpose.
	Lacking func(ctx context.Context, names []string) ([]string, error)
	// Describe completes the environment of a run, and returns notes on what could not be read. Where it is nil, the environment
	// is this machine's alone.
	Describe func(ctx context.Context, e result.Environment) (result.Environment, []string, error)
	// Targets finds endpoints outside of the provider's testbeds; nil where pods can't reach any.
	Targets *Targets
	// Stored finds out whether pods can have volumes of such storage (Spec.Volume), and returns notes on it. The error says what
	// is wrong with the storage.
	Stored func(ctx context.Context, v Volume) (notes []string, err error)
	// Program is the path of this program on the pods' machines; "" where the provider copies it there itself.
	Program string
	// Changer changes the cluster for networks of a study; nil where nothing can be changed. The run has the given name and folder.
	Changer func(run, folder string) (Changer, error)
	// Nodes names the nodes that there are; nil where as many are made as are asked for.
	Nodes func(ctx context.Context) ([]string, error)
	// Places is an error where no testbed can have so many nodes now, an *UnsupportedError where that is up to the nodes that there are; nil where
	// as many are made as are asked for.
	Places func(ctx context.Context, nodes int) error
	// Fleet makes pods of many clients at once; nil where testbeds are as good.
	Fleet func(ctx context.Context, s FleetSpec) (Fleet, error)
	// Policies opens a server that a NetworkPolicy closes, with so many policies in force and a probe of it as often as every; nil where
	// there are no such objects.
	Policies func(ctx context.Context, count int, every time.Duration) (PolicyTarget, error)
	// Guest boots a machine and starts this program in it, which then does a whole run there; nil where runs are led from here.
	Guest func(ctx context.Context, s GuestSpec) (*Guest, error)
	// Counter finds the guests whose clock counts instructions; nil where there are none.
	Counter func(ctx context.Context) (*Counter, error)
}

// Costs are guesses of how long the parts of a run take.
type Costs struct {
	// Start is the first start of pods, Build each further set-up of the networks, Cell what a cell adds to a round, and Exchange
	// a request to an agent with its answer.
	Start, Build, Cell, Exchange time.Duration
	// Opens is how many testbeds are opened at the same time.
	Opens int
	// Ground names in a sentence what the testbeds stand on: "the cluster".
	Ground string
}

// Targets finds endpoints that pods can be clients of: Spec.Target names one.
type Targets struct {
	// Locate finds out where an endpoint is, by the host that clients know it by: a name or an address. Its answer stays the same; Open
	// asks anew on which nodes the endpoint is. The error says what is wrong with the host; where the endpoint can't be found out about,
	// the Site says why.
	Locate func(ctx context.Context, host string) (Site, error)
	// From is the network from whose pods endpoints are looked up.
	From string
}

// Site says where an endpoint is.
type Site struct {
	// Nodes are the names of the endpoint's nodes, sorted; empty where they are not known.
	Nodes []string
	// NoSameNode says why no client can be put on the endpoint's own node, "" where one can.
	NoSameNode string
	// MaybeSameNode says why clients on another node, as they are meant to be, may still be on the endpoint's, "" where they can't.
	MaybeSameNode string
}

// Instruments observe a live testbed. A nil field means that the testbed lacks the instrument.
type Instruments struct {
	// Observer looks at the devices of a network that the provider has planned, PathObserver at the devices of any other network.
	Observer     Observer
	PathObserver PathObserver
	// WatchConfig begins to watch how the testbed's namespaces are configured, which only netdelta itself should change; on a cluster, whether
	// the agents of its network keep running.
	WatchConfig func(ctx context.Context) (ConfigWatch, error)
	// Drops counts what devices and queueing disciplines of the testbed have dropped since they were made.
	Drops func(ctx context.Context) ([]result.Drop, error)
	// Within calls f in the network namespace of a node or pod of this machine, with the number of an open file of it.
	Within func(name string, f func(fd int) error) error
	// Carriers are the process IDs, on this machine, of programs that do part of the network's work now, such as the ends of a
	// userspace tunnel.
	Carriers func() []int
	// Versions asks the programs that build the networks for their versions, by their names.
	Versions func() (map[string]string, error)
	// Moved is an error where the endpoint of Spec.Target stands otherwise than when the testbed was opened.
	Moved func(ctx context.Context) error
	// Notes are sentences that a reader of the figures must know: which of the testbed's conditions could not be met everywhere.
	Notes func() []string
}

// FleetSpec is a fleet that is wanted: pods of many clients and of servers, in one network.
type FleetSpec struct {
	Network string
	// Family is the version of IP; "" is IPv4.
	Family result.Family
	// Clients and Servers are how many pods of each.
	Clients, Servers int
}

// Fleet is the pods of many clients and of servers, in one network. Close is idempotent.
type Fleet interface {
	// Clients are the pods that clients run in, one for each client; where clients share a pod it is there several times.
	Clients() []Pod
	// Servers are the pods of servers, one for each.
	Servers() []Pod
	// Missing says why pods that were asked for never came, by their names.
	Missing() map[string]string
	// Endpoint is the address at which a client's pod reaches a server's port.
	Endpoint(from, to Pod, port uint16) netip.AddrPort
	Close() error
}

// PolicyTarget is a server that one NetworkPolicy closes, and a watch of whether it is closed. It is for one goroutine.
type PolicyTarget interface {
	// Shut makes the policy and Lift deletes it; both return when that is accepted.
	Shut(ctx context.Context) error
	Lift(ctx context.Context) error
	// Turns are the openings and closings; the first says how the way was found. Lost is closed when there will be no more.
	Turns() <-chan Turn
	Lost() <-chan struct{}
	// Restrict makes, in place of Shut, a policy that closes the way to all but the pods it admits. TryFresh has a fresh pod, admitted
	// or not, try the way from its first moment on.
	Restrict(ctx context.Context) error
	TryFresh(ctx context.Context, admitted bool, every, within time.Duration) (FreshResult, error)
	// Clock reads the clock by which turns are told.
	Clock(ctx context.Context) (Turn, error)
	Close() error
}

// Turn is a way that has opened or closed, or an answer to a line of input: the clock. All times are by the monotonic clock of the
// pod's node.
type Turn struct {
	Open bool `json:"open"`
	// Before is when the last probe was sent that came out as before, 0 where there is none, and Since the first that did not.
	Before time.Duration `json:"before_ns,omitempty"`
	Since  time.Duration `json:"since_ns,omitempty"`
	// Received and Answered are when a line was read, and when it was answered.
	Received time.Duration `json:"received_ns,omitempty"`
	Answered time.Duration `json:"answered_ns,omitempty"`
}

// FreshResult is what came of the packets of a fresh pod. Times count from when the pod's program began, by the clock of its node.
type FreshResult struct {
	Sent   int `json:"sent"`
	Passed int `json:"passed"`
	// Before is when the last packet was sent that did not come out as is right in the end, and After the first from which on all did. Both
	// are 0 where the first did already.
	Before time.Duration `json:"before_ns"`
	After  time.Duration `json:"after_ns"`
	// Settled says that it came out right in time.
	Settled bool `json:"settled"`
}

// GuestSpec is what a guest is needed for. It is pure data.
type GuestSpec struct {
	// Networks are the names of the networks that testbeds in the guest will have. Spec is the same for all of them.
	Networks []string
	Spec     Spec
	// Programs says that the workloads need external programs.
	Programs bool
	// Args are the arguments with which this program is started in the guest.
	Args []string
}

// Guest is a machine in which this program runs.
type Guest struct {
	Program GuestProgram
	// Describe adds what only the host knows to an environment that was found inside.
	Describe func(inside result.Environment) result.Environment
	// Close ends the machine.
	Close func() error
}

// GuestProgram is a program in a guest: Write goes to its standard input, Read comes from its standard output.
type GuestProgram interface {
	io.Reader
	io.Writer
	CloseWrite() error
	// Wait returns when the program has ended, with what it said in the error when it failed.
	Wait() error
	Kill() error
}

// Counter boots guests whose clock counts instructions.
type Counter struct {
	// PerInstruction is how many nanoseconds the guests' clock advances with each instruction, and Clock the name of that clock.
	PerInstruction float64
	Clock          string
	// Emulator is the version of what runs the guests, Processor what it emulates, and Image what identifies the guests' files.
	Emulator, Processor, Image string
	// Environment is what the host knows about the guests.
	Environment result.Environment
	// Count starts this program in a guest of its own and calls line with each line of its output. An error of line ends the guest.
	Count func(ctx context.Context, job CountJob, line func([]byte) error) error
}

// CountJob is what is done in one guest that counts instructions.
type CountJob struct {
	GuestSpec
	// Seed seeds the guest's random number generator.
	Seed uint64
	// File is the path in the guest of a file with the given content.
	File    string
	Content []byte
}

// Change is how a network of a study changes the cluster while it is measured. It is plain data.
type Change struct {
	// Network is the name that the study gives to the network under this change.
	Network string
	// Uses is the testbed's own network by which servers are reached under the change: "pod", say.
	Uses string
	// Expect is how packets must cross between nodes once the change is in effect, "" where nothing is expected.
	Expect Encapsulation
	// Apply, Ready and Restore are carried out in order. Apply makes the change, Ready succeeds once it is in effect, and
	// Restore undoes it: it returns when all is as it was.
	Apply, Ready, Restore []Action
	// Settle brings what others run on the cluster into the state that it is in now: their services may hold connections from before. It is
	// carried out after Ready, and again after Restore.
	Settle []Action
	// Within is how long Ready may take to succeed; it is tried again until then.
	Within time.Duration
	// Kept says that the pods survive the change. Otherwise new pods are made under it.
	Kept bool
}

// ChangedFor words what a change is made for, by the name that it has in a study: a network, or a level of a factor, as mtu=9000.
func ChangedFor(name string) string {
	if strings.Contains(name, "=") {
		return "level " + name
	}
	return "network " + name
}

// Action is one step of a change: exactly one of its fields is given.
type Action struct {
	// Command is a program with its arguments. A program without a slash in its name is looked up on the PATH.
	Command []string
	// Manifest is a file of objects that are applied, Delete one of objects that are deleted.
	Manifest, Delete string
}

// String is the step as one would type it.
func (a Action) String() string {
	switch {
	case a.Manifest != "":
		return "kubectl apply --server-side --force-conflicts -f " + Quoted(a.Manifest)
	case a.Delete != "":
		return "kubectl delete --ignore-not-found -f " + Quoted(a.Delete)
	}
	words := gather.Each(a.Command, Quoted)
	return strings.Join(words, " ")
}

// Quoted is a word as a shell reads it as one.
func Quoted(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./=:,@%+", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Encapsulation is how packets between pods cross the underlay.
type Encapsulation string

// The encapsulations; packets may also cross in clear.
const (
	InClear     Encapsulation = "none"
	InVXLAN     Encapsulation = "vxlan"
	InIPIP      Encapsulation = "ipip"
	InGeneve    Encapsulation = "geneve"
	InGRE       Encapsulation = "gre"
	InWireGuard Encapsulation = "wireguard"
	InIPsec     Encapsulation = "ipsec"
)

// Encapsulations are all that can be expected.
func Encapsulations() []Encapsulation {
	return []Encapsulation{InClear, InVXLAN, InIPIP, InGeneve, InGRE, InWireGuard, InIPsec}
}

// Same says whether two changes leave a cluster in the same state, so that their networks can stand side by side.
func (c Change) Same(o Change) bool {
	return c.Within == o.Within && c.Kept == o.Kept && sameActions(c.Apply, o.Apply) && sameActions(c.Ready, o.Ready) && sameActions(c.Restore, o.Restore) && sameActions(c.Settle, o.Settle)
}

func sameActions(a, b []Action) bool {
	return slices.EqualFunc(a, b, func(x, y Action) bool { return reflect.DeepEqual(x, y) })
}

// RestoreError says that a cluster is still changed, and how to restore it.
type RestoreError struct {
	Network string
	// Steps are command lines, to be carried out one after the other in the folder Dir.
	Dir   string
	Steps []string
	Err   error
}

// Error ends with the steps, each on a line of its own.
func (e *RestoreError) Error() string {
	return fmt.Sprintf("the cluster is STILL CHANGED as for network %s, since it could not be restored: %v\nrestore it by hand, in %s:\n  %s",
		e.Network, e.Err, e.Dir, strings.Join(e.Steps, "\n  "))
}

// Unwrap gives the reason.
func (e *RestoreError) Unwrap() error { return e.Err }

// ErrHeld is matched by the error of a change that is refused because another run is changing the same cluster, or has left it changed.
var ErrHeld = errors.New("held by another run")

// Changer changes the cluster that a provider's testbeds are on. It is not safe for concurrent use.
type Changer interface {
	// Watch looks at what stands on the cluster's nodes before the first change. Without it Left knows nothing.
	Watch(ctx context.Context)
	// Apply makes the change and returns when it is in effect. A change that is applied already must be restored before. After
	// an error part of the change may have been made: Restore undoes that too.
	Apply(ctx context.Context, c Change) error
	// Restore undoes the change that is applied, if one is. The error is a *RestoreError where it could not.
	Restore(ctx context.Context) error
	// Left says, in sentences, what changes that were undone have left on the cluster's nodes so far, and what of other products was there.
	Left() []string
	// Close lets others make changes. It restores nothing and is idempotent.
	Close() error
}
