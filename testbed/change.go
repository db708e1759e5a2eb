package testbed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"netdelta/internal/gather"
)

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
