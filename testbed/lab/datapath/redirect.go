package datapath

import (
	"errors"

	"github.com/cilium/ebpf"

	"netdelta/network"
)

// Redirect attaches the programs of a redirection. It is called inside the node's namespace; number finds a device there. Its
// error is an *testbed.UnsupportedError where this can't be had.
func Redirect(op network.Redirection, number func(device string) (int, error)) (*Attached, error) {
	entry, err := number(op.Entry)
	if err != nil {
		return nil, err
	}
	l := load(loadRedirect, func(spec *ebpf.CollectionSpec) error {
		if !op.Tunnel {
			return nil
		}
		return errors.Join(
			spec.Variables[redirectVarTunnel].Set(uint32(entry)), spec.Variables[redirectVarTunnelId].Set(op.TunnelID),
			spec.Variables[redirectVarNear].Set(redirectAddress{Word: words(op.Near)}))
	}, number)
	for _, f := range op.Far {
		key := redirectPrefix{Bits: bits(f.Pods), Address: redirectAddress{Word: words(f.Pods.Addr())}}
		l.put(redirectMapFar, f.Pods, key, redirectAddress{Word: words(f.Node)})
	}
	for _, p := range op.Pods {
		end := l.device(p.NodeEnd)
		l.put(redirectMapPods, p.Address, redirectAddress{Word: words(p.Address)}, redirectPod{NodeEnd: uint32(end), Mac: p.MAC, Gateway: p.Gateway})
		l.attach(redirectProgFromPod, end, ebpf.AttachTCXIngress, nil)
	}
	l.attach(redirectProgFromOutside, entry, ebpf.AttachTCXIngress, nil)
	return l.done()
}
