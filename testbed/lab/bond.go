package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"netdelta/network"
)

// monitorEvery is how often a bond looks whether its links are up, in milliseconds.
const monitorEvery = 100

// bond makes a bond of devices that are there.
func (b *builder) bond(op network.Bond) error {
	s, err := b.in(op.In)
	if err != nil {
		return err
	}
	a := attrs(op.Name, op.MAC, op.MTU)
	a.Flags = 0 // it comes up with its links in it
	l := netlink.NewLinkBond(a)
	if l.Mode = netlink.StringToBondMode(op.Mode); l.Mode == netlink.BOND_MODE_UNKNOWN {
		return fmt.Errorf("the bond mode %q is unknown", op.Mode)
	}
	if op.Hash != "" {
		if l.XmitHashPolicy = netlink.StringToBondXmitHashPolicy(op.Hash); l.XmitHashPolicy == netlink.BOND_XMIT_HASH_POLICY_UNKNOWN {
			return fmt.Errorf("the xmit_hash_policy %q is unknown", op.Hash)
		}
	}
	if op.Mode == network.ModeTLB && op.Hash != "" {
		l.TlbDynamicLb = 0 // which would choose links by their load
	}
	l.Miimon = monitorEvery
	loadBonding()
	if err := s.nl.LinkAdd(l); err != nil {
		return err
	}
	master, err := s.link(op.Name)
	if err != nil {
		return err
	}
	for _, name := range op.Links {
		i, err := s.link(name)
		if err != nil {
			return err
		}
		// A bond takes only devices that are down, and brings them up.
		if err := s.nl.LinkSetDown(indexed(i)); err != nil {
			return fmt.Errorf("bring %s down: %w", name, err)
		}
		if err := s.nl.LinkSetMasterByIndex(indexed(i), master); err != nil {
			return fmt.Errorf("take %s into the bond: %w", name, err)
		}
	}
	b.expect(op.Device)
	if op.Mode == network.ModeLACP {
		b.negotiating = append(b.negotiating, op)
	}
	return s.up(op.Name)
}

// loadPatience is how long a module may take to load.
const loadPatience = 10 * time.Second

// loadBonding has the kernel's module for bonds loaded, where it is one and not there yet, without the device bond0 that it
// makes in the machine's own namespace when the kernel loads it for the first bond. Where that is not possible, the kernel
// loads it all the same or says that it has none.
func loadBonding() {
	if _, err := os.Stat("/proc/modules"); err != nil {
		return
	}
	if _, err := os.Stat("/sys/module/bonding"); err == nil {
		return
	}
	program, err := superuserTool("modprobe")
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadPatience)
	defer cancel()
	_ = exec.CommandContext(ctx, program, "-q", "bonding", "max_bonds=0").Run() // what it does not do, the kernel does
}

// lacpPatience is how long the two ends of a bond may take to agree on its links. Usually it is half a second; an end without
// an answer asks again after a second, and every 30 seconds later on.
const (
	lacpPatience = 30 * time.Second
	lacpPause    = 10 * time.Millisecond
)

// NotConvergedError says that the two ends of bonds have not agreed on which links they use (IEEE 802.1AX).
type NotConvergedError struct {
	// Links are those that were not agreed on, each with what is missing of it.
	Links    []string
	Patience time.Duration
}

// Error implements error.
func (e *NotConvergedError) Error() string {
	return fmt.Sprintf("LACP did not converge within %s: %s; both ends must be bonds of mode 802.3ad, joined link by link",
		e.Patience, strings.Join(e.Links, "; "))
}

// agree waits until both ends of each bond that negotiates its links have agreed on all of them.
func (b *builder) agree(ctx context.Context, patience time.Duration) error {
	waiting := b.negotiating
	var links []string
	agreed, err := until(ctx, patience, lacpPause, func() (bool, error) {
		links = nil
		var open []network.Bond
		for _, op := range waiting {
			lacking, err := b.disagreed(op)
			if err != nil {
				return false, err
			}
			if len(lacking) > 0 {
				open, links = append(open, op), append(links, lacking...)
			}
		}
		waiting = open
		return len(waiting) == 0, nil
	})
	if err == nil && !agreed {
		return &NotConvergedError{links, patience}
	}
	return err
}

// What the state of a link's end says, bit by bit (IEEE 802.1AX, 6.4.2.3).
const (
	lacpSynchronised = 1 << 3
	lacpCollecting   = 1 << 4
	lacpDistributing = 1 << 5
	lacpDefaulted    = 1 << 6 // nothing was heard of the other end
	lacpInUse        = lacpSynchronised | lacpCollecting | lacpDistributing
)

// disagreed lists the links of a bond that are not in use at both ends, each with what is missing.
func (b *builder) disagreed(op network.Bond) ([]string, error) {
	s, err := b.in(op.In)
	if err != nil {
		return nil, err
	}
	var lacking []string
	first := uint16(0) // the number of the first link's aggregate
	for k, m := range op.Members() {
		l, err := s.device(m.Name)
		if err != nil {
			return nil, err
		}
		end, ok := l.Attrs().Slave.(*netlink.BondSlave)
		if !ok {
			return nil, fmt.Errorf("%s is not in the bond %s", m, op.Name)
		}
		if k == 0 {
			first = end.AggregatorId
		}
		switch {
		case end.AdActorOperPortState&lacpDefaulted != 0:
			lacking = append(lacking, m.String()+": no answer")
		case end.AdActorOperPortState&lacpInUse != lacpInUse:
			lacking = append(lacking, m.String()+": not taken into use")
		case end.AdPartnerOperPortState&lacpInUse != lacpInUse:
			lacking = append(lacking, m.String()+": not taken into use by the other end")
		case end.AggregatorId != first:
			lacking = append(lacking, m.String()+": not aggregated with "+op.Links[0])
		}
	}
	return lacking, nil
}
