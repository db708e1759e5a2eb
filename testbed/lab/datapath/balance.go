package datapath

import (
	"github.com/cilium/ebpf"

	"netdelta/network"
)

// Balance attaches the programs that translate virtual addresses at a client's device, which is called by its number. It is
// called inside the client's namespace. Its error is an *testbed.UnsupportedError where this can't be had.
func Balance(op network.Balance, device int) (*Attached, error) {
	l := load(loadBalance, func(spec *ebpf.CollectionSpec) error {
		spec.Maps[balanceMapServices].MaxEntries = uint32(max(1, len(op.Services)))
		return nil
	}, nil)
	for _, s := range op.Services {
		l.put(balanceMapServices, s.Virtual, balanceAddress{Word: words(s.Virtual)}, balanceAddress{Word: words(s.Backend)})
	}
	l.attach(balanceProgLeave, device, ebpf.AttachTCXEgress, nil)
	l.attach(balanceProgEnter, device, ebpf.AttachTCXIngress, nil)
	return l.done()
}
