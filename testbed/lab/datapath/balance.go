package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"

	"netdelta/network"
)

// Balance attaches the programs that translate virtual addresses at a client's device, which is called by its number. It is
// called inside the client's namespace. Its error is an *testbed.UnsupportedError where this can't be had.
func Balance(op network.Balance, device int) (a *Attached, err error) {
	a = &Attached{}
	defer a.closeAfter(&err)
	spec, err := loadBalance()
	if err != nil {
		return nil, err
	}
	spec.Maps[balanceMapServices].MaxEntries = uint32(max(1, len(op.Services)))
	c, err := a.collected(spec)
	if err != nil {
		return nil, err
	}
	for _, s := range op.Services {
		if err := c.Maps[balanceMapServices].Put(balanceAddress{Word: words(s.Virtual)}, balanceAddress{Word: words(s.Backend)}); err != nil {
			return nil, fmt.Errorf("enter %s: %w", s.Virtual, err)
		}
	}
	if err := a.attach(c.Programs[balanceProgLeave], device, ebpf.AttachTCXEgress, nil); err != nil {
		return nil, err
	}
	return a, a.attach(c.Programs[balanceProgEnter], device, ebpf.AttachTCXIngress, nil)
}
