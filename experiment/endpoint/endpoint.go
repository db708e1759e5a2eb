// Package endpoint connects the client of a cell to what serves it: a server that netdelta starts, a cluster of daemons, an external
// target, or a volume.
package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// Endpoint is what one client connects to. Its methods must not be called concurrently.
type Endpoint interface {
	// Info describes the endpoint in the present network.
	Info() Info
	// Open starts what is started for this client alone.
	Open(ctx context.Context) error
	// Dial opens a connection and returns the client's session.
	Dial(ctx context.Context) (session int, err error)
	// Check asks all services how they are: what ails them, "" if they are well, and whether a daemon has ended.
	Check(ctx context.Context) (ailment string, ended bool)
	// Recover waits until shared services are well, and restarts them where they don't recover by themselves.
	Recover(ctx context.Context) error
	// Close stops what Open started.
	Close(ctx context.Context) error
}

// Info describes an endpoint.
type Info struct {
	// Name is what messages call the endpoint.
	Name string
	// Agent is at the server's end: in the first pod of a cluster, or the client's own without a server of netdelta's.
	Agent *agent.Agent
	// Address is where packets of the client go, as far as that is known.
	Address netip.AddrPort
	// Services are daemons that can be unwell.
	Services []*Service
	// Peers are pods that serve in addition to Agent's.
	Peers []testbed.Pod
	// Shared says that the services serve several cells and outlive the client.
	Shared bool
	// External says that no agent is at the server's end, so that the path can't be proven.
	External bool
	// Retry says that Dial may fail at first, until all nodes know the endpoint's addresses.
	Retry bool
}

// Client is the measuring end of a cell.
type Client struct {
	Agent *agent.Agent
	// Runner is an agent that holds the client's end in Agent's pod, since it visits clients of other pods in the same sweeps; nil is
	// Agent itself.
	Runner  *agent.Agent
	Testbed testbed.Testbed
	Cell    result.Cell
	Demand  workload.Demand
	CPU     int  // that the client is pinned to; -1 is any
	Remote  bool // the pods are on nodes of others
}

// How long it may take to start a server with programs, a client, and the pods of a cluster; and to connect once to a server on
// another machine.
const (
	serveWithin   = time.Minute
	dialWithin    = time.Minute
	clusterWithin = 2 * time.Minute
	reachWithin   = 4 * time.Second
)

// within bounds a start: d where programs are started. netdelta's own loops start at once, where the network is ready.
func (c Client) within(d time.Duration) time.Duration {
	switch {
	case len(c.Demand.Programs) > 0:
		return d
	case c.Remote:
		return reachWithin
	}
	return 0
}

// Ports are the same in every network and build, so that no hash of a connection's addresses differs between two cells that are
// compared.
type Ports struct {
	Server int // counted from the first port of the server's pod
	Client int // the first of as many as the workload uses; 0 where the kernel chooses
}

// Addresses are where a server in the pod listens, and where its client's connections begin.
func (p Ports) Addresses(pod testbed.Pod, family result.Family) (listen, local netip.AddrPort, err error) {
	first, last := pod.Ports()
	port := int(first) + p.Server
	if port > int(last) {
		return listen, local, fmt.Errorf("pod %s has ports %d to %d, too few for setting %d of the study", pod.Name(), first, last, p.Server+1)
	}
	all := AnyAddress(family)
	at := all
	if own := pod.Address(); own.IsLoopback() {
		at = own // the pod is in the machine's own namespace: only programs of this machine may connect
	}
	return netip.AddrPortFrom(at, uint16(port)), netip.AddrPortFrom(all, uint16(p.Client)), nil
}

// AnyAddress is the address that stands for all of a pod's own.
func AnyAddress(family result.Family) netip.Addr {
	if family == result.IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

// Server is an endpoint that netdelta starts for one client.
type Server struct {
	private
	client        Client
	ports         Ports
	cpu           int
	local, remote netip.AddrPort
}

// NewServer returns the endpoint that serves the client from an agent, pinned to a processor unless cpu is negative.
func NewServer(c Client, server *agent.Agent, ports Ports, cpu int) *Server {
	return &Server{private: private{agent: server}, client: c, ports: ports, cpu: cpu}
}

// Open starts the server.
func (s *Server) Open(ctx context.Context) error {
	pod, cell := s.agent.Pod(), s.client.Cell
	listen, local, err := s.ports.Addresses(pod, cell.Params.Family)
	if err != nil {
		return err
	}
	session, err := s.agent.ServeWithin(ctx, cell.Workload, cell.Params, listen, s.cpu, s.client.within(serveWithin))
	if err != nil {
		return fmt.Errorf("starting the server of %s: %w", cell.ID, err)
	}
	s.services = []*Service{{Agent: s.agent, Session: session}}
	s.local, s.remote = local, s.client.Testbed.Endpoint(s.client.Agent.Pod(), pod, listen.Port())
	return nil
}

// Info implements Endpoint.
func (s *Server) Info() Info {
	return Info{Name: s.remote.String(), Agent: s.agent, Address: s.remote, Services: s.services, Retry: s.client.Remote}
}

// Dial implements Endpoint.
func (s *Server) Dial(ctx context.Context) (int, error) {
	c := s.client
	if c.Runner != nil {
		return s.dialOver(ctx)
	}
	return c.Agent.DialWithin(ctx, c.Cell.Workload, c.Cell.Params, s.local, s.remote, c.CPU, c.within(dialWithin))
}

// dialOver has the runner take over connections of the client's pod.
func (s *Server) dialOver(ctx context.Context) (session int, err error) {
	sockets, err := s.Connect(ctx)
	if err != nil {
		return 0, err
	}
	c := s.client
	session, err = c.Runner.DialOver(ctx, sockets, c.Cell.Workload, c.Cell.Params, s.local, s.remote, c.CPU)
	return session, errors.Join(err, c.Agent.LetGo(ctx, sockets))
}

// Connect opens connections in the client's pod, for its runner to take over.
func (s *Server) Connect(ctx context.Context) (agent.Sockets, error) {
	return s.client.Agent.Connect(ctx, s.client.Cell.Workload, s.client.Cell.Params, s.local, s.remote)
}

// private is what endpoints have in common whose services, if any, serve one client.
type private struct {
	agent    *agent.Agent
	services []*Service
}

func (p *private) Open(context.Context) error    { return nil }
func (p *private) Recover(context.Context) error { return nil }

func (p *private) Check(ctx context.Context) (ailment string, ended bool) {
	return check(ctx, p.services)
}

func (p *private) Close(ctx context.Context) error {
	if len(p.services) == 0 {
		return nil
	}
	return p.agent.Drop(ctx, p.services[0].Session)
}

// volumeWithin bounds the opening of a client whose volume has to be filled first.
const volumeWithin = 10 * time.Minute

// Volume is an endpoint without a server: the client works in a volume of its own pod.
type Volume struct {
	private
	client Client
}

// NewVolume returns the volume of the client's pod.
func NewVolume(c Client) *Volume { return &Volume{client: c} }

// Info implements Endpoint.
func (v *Volume) Info() Info {
	return Info{Name: "its volume of storage class " + v.client.Cell.Params.StorageClass, Agent: v.client.Agent, External: true}
}

// Dial implements Endpoint. It is not retried: errors of volumes are permanent.
func (v *Volume) Dial(ctx context.Context) (int, error) {
	c := v.client
	return c.Agent.DialWithin(ctx, c.Cell.Workload, c.Cell.Params, netip.AddrPort{}, netip.AddrPort{}, c.CPU, volumeWithin)
}
