package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"netdelta/network"
)

// Guard attaches the programs of a policy. It is called inside the guarded namespace; number finds a device there. Its error
// is an *testbed.UnsupportedError where this can't be had.
func Guard(op network.Guard, number func(device string) (int, error)) (*Attached, error) {
	l := load(loadGuard, func(spec *ebpf.CollectionSpec) error {
		spec.Maps[guardMapSources].MaxEntries = uint32(max(1, len(op.Entries)))
		return nil
	}, number)
	for _, e := range op.Entries {
		accept, known := map[network.Verdict]uint32{network.Accept: 1, network.Drop: 0}[e.Do]
		if !known && l.err == nil {
			l.err = fmt.Errorf("a guard can't do verdict %d", e.Do)
		}
		key := guardPrefix{Bits: bits(e.From)}
		key.Address.Word = words(e.From.Addr())
		l.put(guardMapSources, e.From, key, accept)
	}
	for _, device := range op.Devices {
		// Before addresses are translated: the table knows the pods' own.
		l.attach(guardProgGuard, l.device(device), ebpf.AttachTCXIngress, link.Head())
	}
	return l.done()
}
