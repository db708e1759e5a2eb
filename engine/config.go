package engine

import (
	"net/netip"

	"netdelta/result"
)

// Kind is what a loop does.
type Kind int32

// The kinds of loop.
const (
	// StreamRR exchanges requests and responses on TCP connections.
	StreamRR Kind = iota + 1
	// DatagramRR exchanges requests and responses as UDP datagrams.
	DatagramRR
	// ConnectRR opens a TCP connection for each request and response.
	ConnectRR
	// StreamOut sends on TCP connections as fast as they take it.
	StreamOut
	// DatagramOut sends UDP datagrams at a given rate.
	DatagramOut
	// HTTPGet asks a server of HTTP for the same file again and again.
	HTTPGet
)

// datagrams says whether the kind is carried by UDP.
func (k Kind) datagrams() bool { return k == DatagramRR || k == DatagramOut }

// latencies says whether the kind measures latencies.
func (k Kind) latencies() bool {
	return k == StreamRR || k == DatagramRR || k == ConnectRR || k == HTTPGet
}

// opens says whether the loop of a client opens a connection for each transaction by itself.
func (cfg *Config) opens() bool {
	return cfg.Kind == ConnectRR || cfg.Kind == HTTPGet && cfg.Params.Reconnect
}

// Config is one end of a workload.
type Config struct {
	// Workload is the name that errors begin with.
	Workload string
	Kind     Kind
	// Params have been checked, and their defaults filled in.
	Params result.Params
	// Local is where a server listens, or the address and first port that a client uses; port 0 of a client is any.
	Local netip.AddrPort
	// Remote is the server that a client talks to.
	Remote netip.AddrPort
	// Request is what an HTTPGet client sends: it asks for a file of Params.File bytes.
	Request string
	// CPU is the processor that the loop is pinned to; negative is none.
	CPU int
}

// ConnectPorts is how many consecutive source ports a ConnectRR client uses in turn, so that a port is not used again
// before the closing of its last connection has crossed the network.
const ConnectPorts = 64
