package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
	"netdelta/testbed/servers/server"
	"netdelta/unit"
)

// ways finds out how large packets can be between any two nodes, over the cards that they were given: on a testbed of its own, with the
// largest MTU that the cards take. Why that is not known is said in each way.
func (s *Servers) ways(ctx context.Context) (all []result.Way) {
	for i := range s.options.Machines {
		for k := range i {
			all = append(all, result.Way{Between: s.options.Machines[k].String(), And: s.options.Machines[i].String()})
		}
	}
	if len(all) == 0 {
		return nil
	}
	bed, err := s.widest(ctx)
	if err != nil {
		for w := range all {
			all[w].Why = err.Error()
		}
		return all
	}
	defer func() { _ = bed.Close() }() // what is lost there shows when networks are built
	pods := bed.Pods()
	var group sync.WaitGroup
	for from := range pods { // one at a time from each
		group.Go(func() {
			for to := from + 1; to < len(pods); to++ {
				way := &all[to*(to-1)/2+from]
				found, err := bed.LargestPacket(ctx, pods[from], pods[to])
				way.MTU, way.Device = found.Way, found.Device
				if err != nil {
					way.Why = err.Error()
				}
			}
		})
	}
	group.Wait()
	return all
}

// widest opens a testbed of the network host, with the largest MTU that the nodes' cards take.
func (s *Servers) widest(ctx context.Context) (*joined.Testbed, error) {
	family := result.IPv4
	if s.options.NIC.Addresses.Addr().Is6() {
		family = result.IPv6
	}
	least := s.leastMTU()
	sizes := []unit.Bytes{least}
	if s.options.NIC.Mode == server.Take && least < server.Jumbo {
		sizes = []unit.Bytes{server.Jumbo, least} // the first where the cards could be given it
	}
	var failed error
	for _, size := range sizes {
		bed, err := s.Driver.Open(ctx, testbed.Spec{Nodes: len(s.options.Machines), PodsPerNode: 1, Family: family, Network: "host", Link: testbed.Link{MTU: size}})
		if err == nil {
			return bed.(*joined.Testbed), nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// wayNotesMost is how many ways are named one by one.
const wayNotesMost = 4

// wayNotes say how large packets can be between nodes: in one line what holds for most, and which are others.
func wayNotes(ways []result.Way) (notes []string) {
	count := map[result.Way]int{}
	var usual result.Way
	for _, w := range ways {
		same := result.Way{MTU: w.MTU, Device: w.Device, Why: w.Why}
		if count[same]++; count[same] > count[usual] {
			usual = same
		}
	}
	others := slices.DeleteFunc(slices.Clone(ways), func(w result.Way) bool {
		return w.MTU == usual.MTU && w.Device == usual.Device && w.Why == usual.Why
	})
	if len(ways) > 0 {
		notes = append(notes, wayNote("the servers", usual))
	}
	for i, w := range others {
		if i == wayNotesMost {
			return append(notes, fmt.Sprintf("%d more ways between servers differ, in result.json", len(others)-i))
		}
		notes = append(notes, wayNote(w.Between+" and "+w.And, w))
	}
	return notes
}

func wayNote(between string, w result.Way) string {
	switch {
	case w.Why != "":
		return fmt.Sprintf("how large packets can be between %s is not known: %s", between, w.Why)
	case w.MTU < w.Device:
		return fmt.Sprintf("between %s packets of up to %d bytes arrive, though the cards take %d", between, w.MTU, w.Device)
	}
	return fmt.Sprintf("between %s packets of %d bytes arrive, as large as the cards take", between, w.MTU)
}

// wayFindings are the ways on which packets get lost that the servers' own cards take.
func (s *Servers) wayFindings(ways []result.Way) (all []result.Finding) {
	own := map[string]int{}
	for _, l := range s.links {
		own[l.name] = l.report.Card.MTU
	}
	for _, w := range ways {
		if card := min(own[w.Between], own[w.And]); w.MTU > 0 && w.MTU < card {
			says, fix := Lost(w.MTU, card)
			all = append(all, result.Finding{Topic: w.Between + " to " + w.And, Says: says, Fix: fix})
		}
	}
	return all
}

// Lost says that packets larger than a way carries get lost, though the card at its beginning takes them, and what to do.
func Lost(way, card int) (says, fix string) {
	return fmt.Sprintf("packets of more than %d bytes get lost, though the card's MTU is %d", way, card),
		fmt.Sprintf("let the cards and switches on the way carry packets of %d bytes, or set the card's MTU to %d", card, way)
}
