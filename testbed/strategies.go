package testbed

import (
	"context"
	"net/netip"
	"time"

	"netdelta/result"
)

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
