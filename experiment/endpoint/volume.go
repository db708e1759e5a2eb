package endpoint

import (
	"context"
	"net/netip"
	"time"
)

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
