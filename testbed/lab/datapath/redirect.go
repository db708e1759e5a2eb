package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"

	"netdelta/network"
)

// Redirect attaches the programs of a redirection. It is called inside the node's namespace; number finds a device there. Its
// error is an *testbed.UnsupportedError where this can't be had.
func Redirect(op network.Redirection, number func(device string) (int, error)) (a *Attached, err error) {
	a = &Attached{}
	defer a.closeAfter(&err)
	spec, err := loadRedirect()
	if err != nil {
		return nil, err
	}
	entry, err := number(op.Entry)
	if err != nil {
		return nil, err
	}
	if op.Tunnel {
		if err := spec.Variables[redirectVarTunnel].Set(uint32(entry)); err != nil {
			return nil, fmt.Errorf("set the tunnel: %w", err)
		}
		if err := spec.Variables[redirectVarTunnelId].Set(op.TunnelID); err != nil {
			return nil, fmt.Errorf("set the tunnel's id: %w", err)
		}
		if err := spec.Variables[redirectVarNear].Set(redirectAddress{Word: words(op.Near)}); err != nil {
			return nil, fmt.Errorf("set the tunnel's near end: %w", err)
		}
	}
	c, err := a.collected(spec)
	if err != nil {
		return nil, err
	}
	for _, f := range op.Far {
		key := redirectPrefix{Bits: bits(f.Pods), Address: redirectAddress{Word: words(f.Pods.Addr())}}
		if err := c.Maps[redirectMapFar].Put(key, redirectAddress{Word: words(f.Node)}); err != nil {
			return nil, fmt.Errorf("enter %s: %w", f.Pods, err)
		}
	}
	for _, p := range op.Pods {
		end, err := number(p.NodeEnd)
		if err != nil {
			return nil, err
		}
		pod := redirectPod{NodeEnd: uint32(end), Mac: p.MAC, Gateway: p.Gateway}
		if err := c.Maps[redirectMapPods].Put(redirectAddress{Word: words(p.Address)}, pod); err != nil {
			return nil, fmt.Errorf("enter %s: %w", p.Address, err)
		}
		if err := a.attach(c.Programs[redirectProgFromPod], end, ebpf.AttachTCXIngress, nil); err != nil {
			return nil, err
		}
	}
	return a, a.attach(c.Programs[redirectProgFromOutside], entry, ebpf.AttachTCXIngress, nil)
}

// closeAfter takes away what was attached when attaching the rest failed.
func (a *Attached) closeAfter(err *error) {
	if *err != nil {
		_ = a.Close() // what failed first is what counts
	}
}
