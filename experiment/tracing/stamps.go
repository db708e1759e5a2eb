package tracing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"netdelta/experiment/endpoint"
	"netdelta/experiment/measure"
	"netdelta/probe/hops"
	"netdelta/result"
)

// stampedPort is how far from a pair's port the port of its stamped exchange is, within the range of the pod's servers.
const stampedPort = 500

// Stamp does what Trace does by the sockets' own time stamps, where packets can't be traced: it finds fewer hops, and needs no
// right but that to make namespaces.
func Stamp(ctx context.Context, c Config) ([]Cell, error) {
	return c.gather(func(random *rand.Rand) ([]Traced, error) {
		all := make([]Traced, len(c.Cells))
		for _, i := range random.Perm(len(all)) {
			var err error
			if all[i], err = c.stamped(ctx, c.Cells[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Cells[i].ID, err)
			}
		}
		return all, nil
	})
}

// stamped builds a network and exchanges messages over it.
func (c Config) stamped(ctx context.Context, cell result.Cell) (t Traced, err error) {
	pair, err := measure.NewContext(c.Experiment.Config, c.Experiment.Run).OpenPair(ctx, cell)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	port := pair.Listen + stampedPort
	spec := hops.StampedSpec{
		Protocol: pair.Protocol, Message: pair.Message(), CPU: -1,
		Listen: netip.AddrPortFrom(endpoint.AnyAddress(cell.Params.Family), port), Server: pair.Testbed.Endpoint(pair.Client, pair.Server, port),
	}
	spec.AtClient, spec.AtServer = pair.Inside(pair.Client), pair.Inside(pair.Server)
	if len(c.Experiment.Measuring) > 0 {
		spec.CPU = c.Experiment.Measuring[0]
	}
	var request, response []hops.Hop
	var all hops.Followed
	for range rounds {
		if _, err := pair.Exchange(warm); err != nil {
			return t, err
		}
		times, err := pair.Exchange(exchange)
		if err != nil {
			return t, err
		}
		t.Untraced = append(t.Untraced, floats(times.RoundTrip)...)
		there, back, followed, err := hops.Stamped(spec, exchange, pair.Client.Name(), pair.Server.Name())
		if err != nil {
			return t, err
		}
		request, response = there, back
		all.Request.Times = append(all.Request.Times, followed.Request.Times...)
		all.Response.Times = append(all.Response.Times, followed.Response.Times...)
		all.Otherwise += followed.Otherwise
		all.Request.Places, all.Response.Places = followed.Request.Places, followed.Response.Places
		spec.Listen, spec.Server = next(spec.Listen), next(spec.Server)
	}
	t.Stamped = true
	t.Request, t.Response, t.Otherwise = stretches(request), stretches(response), all.Otherwise
	for k, d := range all.Request.Durations(0) {
		t.Request[k].Times = d
	}
	for k, d := range all.Response.Durations(0) {
		t.Response[k].Times = d
	}
	for i, there := range all.Request.Times {
		back := all.Response.Times[i]
		t.Traced = append(t.Traced, float64(there[len(there)-1]-there[0]+back[len(back)-1]-back[0]))
	}
	return t, nil
}

// next is the address with the port after: a port that was just used may be in its last minute.
func next(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), a.Port()+1) }
