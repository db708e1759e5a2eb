package workload

import (
	"net/netip"

	"netdelta/result"
)

// ExactSpec says where the two ends of an exact measurement are: both live in this one process, so that one clock sees a
// request leave and arrive.
type ExactSpec struct {
	Params result.Params
	// Listen is where the server listens, Local the client's address and port, Server how the client reaches the server.
	Listen, Local, Server netip.AddrPort
	// AtClient and AtServer run a function inside the network namespace of the client's pod and of the server's.
	AtClient, AtServer func(func() error) error
}

// ExactPair is both ends of a workload on an open connection. Close is idempotent.
type ExactPair interface {
	// Exchange runs so many transactions, one after another, and gives the time of each.
	Exchange(transactions int) (ExactTimes, error)
	Close() error
}

// ExactTimes are those of transactions in nanoseconds of the kernel's monotonic clock: from before the request is sent, at
// Begun, until the whole response is there, and the same parted where the server has the whole request.
type ExactTimes struct{ Begun, RoundTrip, Request, Response []int64 }
