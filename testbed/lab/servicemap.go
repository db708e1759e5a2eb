package lab

import (
	"fmt"
	"strconv"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"netdelta/network"
	"netdelta/result"
)

// addServiceMap makes a table in the namespace of the file descriptor that resolves virtual addresses: a map from the
// destination to the chain of its service.
func addServiceMap(fd int, op network.ServiceMap) error {
	c, err := openTables(fd)
	if err != nil {
		return err
	}
	key := nftables.TypeIPAddr
	if op.Family == result.IPv6 {
		key = nftables.TypeIP6Addr
	}
	table := c.AddTable(newTable("services", op.Family))
	// An ID is of a transaction alone. One that is given keeps the library from drawing one from a counter that it does not guard.
	set := &nftables.Set{ID: 1, Table: table, Name: "services", IsMap: true, KeyType: key, DataType: nftables.TypeVerdict}
	if err := c.AddSet(set, nil); err != nil {
		return fmt.Errorf("add the map: %w", err)
	}
	parts := flusher{c: c}
	for k, v := range op.Services {
		chain := c.AddChain(&nftables.Chain{Name: "service-" + strconv.Itoa(k), Table: table})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: translate(v.Backend)})
		err := c.SetAddElements(set, []nftables.SetElement{{
			Key: v.Virtual.AsSlice(), VerdictData: &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain.Name},
		}})
		if err != nil {
			return fmt.Errorf("add service %s: %w", v, err)
		}
		const messages = 3
		if err := parts.made(messages); err != nil {
			return err
		}
	}
	// Last, for it makes the others count.
	out := c.AddChain(&nftables.Chain{
		Name: "out", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput,
		Priority: nftables.ChainPriorityNATDest,
	})
	offset, size := addressField(true, op.Family == result.IPv6)
	c.AddRule(&nftables.Rule{Table: table, Chain: out, Exprs: []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Lookup{SourceRegister: 1, DestRegister: 0, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
	}})
	return c.Flush()
}

// flusher sends messages in parts: the kernel's answers to some hundred at once would not fit a socket's buffer.
type flusher struct {
	c       *nftables.Conn
	waiting int
}

const messagesAtOnce = 120

// made counts messages that wait, and sends them when there are enough.
func (f *flusher) made(count int) error {
	if f.waiting += count; f.waiting < messagesAtOnce {
		return nil
	}
	f.waiting = 0
	return f.c.Flush()
}
