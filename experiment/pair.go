package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// Pair is both ends of a cell, on an open connection and stamped by one clock: they live in this process, each in its pod's
// network namespace while it opens its socket. Close is idempotent.
type Pair struct {
	workload.ExactPair
	// Testbed is where the pair stands; Client and Server are the pods of its ends.
	Testbed        testbed.Testbed
	Client, Server testbed.Pod
	// Protocol is what carries the payload, Remote where the client reaches the server, Listen the server's own port.
	Protocol network.Protocol
	Remote   netip.AddrPort
	Listen   uint16

	cell result.Cell
	owns bool // the testbed is closed with the pair
}

// OpenPair builds the network of a cell as the configuration says and opens both ends of the cell on it. They are pinned to
// the first of the measuring processors. The testbed is closed with the pair.
func OpenPair(ctx context.Context, c Config, cell result.Cell) (*Pair, error) {
	st := newStage(c)
	tb, err := st.driver.Open(ctx, st.specOf(groupOf(cell)))
	if err != nil {
		return nil, fmt.Errorf("building network %s: %w", cell.Network, err)
	}
	cpu := -1
	if len(c.Measuring) > 0 {
		cpu = c.Measuring[0]
	}
	p, err := st.openPair(ctx, tb, cell, cpu)
	if err != nil {
		return nil, errors.Join(err, tb.Close())
	}
	p.owns = true
	return p, nil
}

// openPair opens both ends of a cell on a testbed.
func (st *stage) openPair(ctx context.Context, tb testbed.Testbed, c result.Cell, cpu int) (*Pair, error) {
	within := tb.Instruments().Within
	if within == nil {
		return nil, fmt.Errorf("%s: this testbed has no namespaces that this process could enter: both ends in one process need the lab", c.ID)
	}
	at := slices.IndexFunc(st.workloads, func(w workload.Workload) bool { return w.Name == c.Workload && w.Exact != nil })
	if at < 0 {
		return nil, fmt.Errorf("%s: workload %s has no exact meaning: its ends can't be stamped by one clock", c.ID, c.Workload)
	}
	if c.Params.Message == 0 {
		c.Params.Message = st.workloads[at].Defaults.Message
	}
	server, err := serverPod(tb, c.Placement)
	if err != nil {
		return nil, err
	}
	p := &Pair{Testbed: tb, Client: tb.Pods()[0], Server: server, Protocol: st.workloads[at].Protocol, cell: c}
	spec, err := st.ends(p)
	if err != nil {
		return nil, err
	}
	p.Remote, p.Listen = spec.Server, spec.Listen.Port()
	spec.AtClient, spec.AtServer = into(within, p.Client), into(within, p.Server)
	p.ExactPair, err = st.workloads[at].Exact(ctx, spec, cpu)
	return p, err
}

// into runs functions inside a pod.
func into(within func(string, func(fd int) error) error, pod testbed.Pod) func(func() error) error {
	return func(f func() error) error {
		return within(pod.Name(), func(fd int) error { return netns.Within(fd, f) })
	}
}

// ends are the addresses of a pair: its ports are the same in every network.
func (st *stage) ends(p *Pair) (workload.ExactSpec, error) {
	ports := st.ports[p.cell.Setting()]
	first, last := p.Server.Ports()
	port := int(first) + ports.server
	if port > int(last) {
		return workload.ExactSpec{}, fmt.Errorf("pod %s has ports %d to %d, too few for setting %d of the study", p.Server.Name(), first, last, ports.server+1)
	}
	all := netip.IPv4Unspecified()
	if p.cell.Params.Family == result.IPv6 {
		all = netip.IPv6Unspecified()
	}
	return workload.ExactSpec{
		Params: p.cell.Params, Listen: netip.AddrPortFrom(all, uint16(port)), Local: netip.AddrPortFrom(all, uint16(ports.client)),
		Server: p.Testbed.Endpoint(p.Client, p.Server, uint16(port)),
	}, nil
}

// prove runs the first transactions under the eyes of a prober, where the testbed has one.
func (p *Pair) prove(ctx context.Context) (*result.Path, error) {
	prober := path.NewProof(p.Testbed)
	if prober == nil {
		_, err := p.Exchange(proofLeast)
		return nil, err
	}
	proof, err := prober.Prove(ctx, p.Client, p.Server, p.Protocol, func(context.Context) (path.Load, error) {
		_, err := p.Exchange(proofLeast)
		payload := proofLeast * p.cell.Params.Message
		load := path.Load{Protocol: p.Protocol, Server: p.Remote, Requests: payload, Responses: payload}
		if p.Protocol == network.UDP {
			load.Message = p.cell.Params.Message
		}
		return load, err
	})
	return &proof, err
}

// Message is the payload of a request and of its response, in bytes.
func (p *Pair) Message() int { return int(p.cell.Params.Message) }

// Inside runs functions inside the network namespace of a pod of the pair's testbed.
func (p *Pair) Inside(pod testbed.Pod) func(func() error) error {
	within := p.Testbed.Instruments().Within
	if within == nil {
		return func(func() error) error {
			return errors.New("this testbed has no namespaces that this process could enter")
		}
	}
	return into(within, pod)
}

// Close ends the connection and, where it is the pair's own, removes the testbed.
func (p *Pair) Close() error {
	var errs []error
	if p.ExactPair != nil {
		errs = append(errs, p.ExactPair.Close())
	}
	if p.owns {
		errs = append(errs, p.Testbed.Close())
	}
	return errors.Join(errs...)
}
