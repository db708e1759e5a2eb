package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"netdelta/network"
)

// Guard attaches the programs of a policy. It is called inside the guarded namespace; number finds a device there. Its error
// is an *testbed.UnsupportedError where this can't be had.
func Guard(op network.Guard, number func(device string) (int, error)) (a *Attached, err error) {
	a = &Attached{}
	defer a.closeAfter(&err)
	spec, err := loadGuard()
	if err != nil {
		return nil, err
	}
	spec.Maps[guardMapSources].MaxEntries = uint32(max(1, len(op.Entries)))
	c, err := a.collected(spec)
	if err != nil {
		return nil, err
	}
	for _, e := range op.Entries {
		accept, known := map[network.Verdict]uint32{network.Accept: 1, network.Drop: 0}[e.Do]
		if !known {
			return nil, fmt.Errorf("a guard can't do verdict %d", e.Do)
		}
		key := guardPrefix{Bits: bits(e.From)}
		key.Address.Word = words(e.From.Addr())
		if err := c.Maps[guardMapSources].Put(key, accept); err != nil {
			return nil, fmt.Errorf("enter %s: %w", e.From, err)
		}
	}
	for _, device := range op.Devices {
		i, err := number(device)
		if err != nil {
			return nil, err
		}
		// Before addresses are translated: the table knows the pods' own.
		if err := a.attach(c.Programs[guardProgGuard], i, ebpf.AttachTCXIngress, link.Head()); err != nil {
			return nil, err
		}
	}
	return a, nil
}
