package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
)

// NodeLink is what joins one node to the switch.
type NodeLink struct {
	Node int
	// Count is how many links there are: several are a bond.
	Count int
	// Rate limits each direction of each of them; zero is unlimited.
	Rate unit.BitsPerSecond
	// Delay is how much later what the node sends arrives.
	Delay time.Duration
}

// String is what ParseNodeLinks reads: "node0:2x25Gbit/s@1ms".
func (l NodeLink) String() string {
	text := fmt.Sprintf("node%d:", l.Node)
	if l.Count > 1 {
		text += strconv.Itoa(l.Count) + "x"
	}
	text += exactRate(l.Rate)
	if l.Delay > 0 {
		text += "@" + exactDuration(l.Delay)
	}
	return text
}

// ParseNodeLinks reads the links of nodes that are not joined as all others are, in the order of the nodes: NODE:[COUNTx]RATE[@DELAY],
// with a plus between nodes ("node0:2x25Gbit/s+node3:10Gbit/s@1ms"). "" and None are no such nodes. Without a delay a node has the common one.
func ParseNodeLinks(text string) ([]NodeLink, error) {
	if text == "" || text == None {
		return nil, nil
	}
	var all []NodeLink
	for one := range strings.SplitSeq(text, "+") {
		l, err := parseNodeLink(one)
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w; write for example node0:2x25Gbit/s or node0:10Gbit/s@1ms, and a plus before the next node", one, err)
		}
		if slices.ContainsFunc(all, func(o NodeLink) bool { return o.Node == l.Node }) {
			return nil, fmt.Errorf("%.60q: node%d is there twice; leave one out", one, l.Node)
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b NodeLink) int { return cmp.Compare(a.Node, b.Node) })
	return all, nil
}

func parseNodeLink(text string) (l NodeLink, err error) {
	name, link, found := strings.Cut(text, ":")
	number, is := strings.CutPrefix(name, "node")
	if l.Node, err = strconv.Atoi(number); !found || !is || err != nil || l.Node < 0 || strconv.Itoa(l.Node) != number {
		return l, errors.New("it does not begin with a node and a colon")
	}
	link, delay, delayed := strings.Cut(link, "@")
	if delayed {
		if l.Delay, err = time.ParseDuration(delay); err != nil || l.Delay <= 0 || l.Delay > maxLinkDelay {
			return l, fmt.Errorf("the delay is not one of up to %s", maxLinkDelay)
		}
	}
	l.Count = 1
	if count, rate, several := strings.Cut(link, "x"); several {
		link = rate
		if l.Count, err = strconv.Atoi(count); err != nil || l.Count < 1 || l.Count > maxLinkCount {
			return l, fmt.Errorf("the number of links is not one of 1 to %d", maxLinkCount)
		}
	}
	if l.Rate, err = unit.ParseRate(link); err != nil || l.Rate < minRate || l.Rate > maxRate {
		return l, fmt.Errorf("the rate is not one of %s to %s", minRate, maxRate)
	}
	return l, nil
}

// LinkOf is what joins a node to the switch: its own link where it has one, else the common one.
func (c Conditions) LinkOf(node int) NodeLink {
	all := NodeLink{Node: node, Count: max(c.LinkCount, 1), Rate: c.LinkRate, Delay: c.LinkDelay}
	links, _ := ParseNodeLinks(c.NodeLinks) // one that does not read was refused
	if i := slices.IndexFunc(links, func(l NodeLink) bool { return l.Node == node }); i >= 0 {
		own := links[i]
		own.Delay = cmp.Or(own.Delay, all.Delay)
		return own
	}
	return all
}

// SlowestLink is what joins a node that can send and receive least: no stream between two nodes is faster. Its rate is zero where
// no link has one.
func (c Conditions) SlowestLink() NodeLink {
	slowest := NodeLink{Count: max(c.LinkCount, 1), Rate: c.LinkRate, Delay: c.LinkDelay}
	links, _ := ParseNodeLinks(c.NodeLinks)
	for _, l := range links {
		if slowest.Rate == 0 || l.total() < slowest.total() {
			slowest = l
		}
	}
	return slowest
}

func (l NodeLink) total() unit.BitsPerSecond { return l.Rate * unit.BitsPerSecond(l.Count) }

// plainLinks is Plain for what joins nodes to the switch.
func (c Conditions) plainLinks() Conditions {
	bonds := c.LinkCount > 1
	if !bonds {
		c.LinkCount = 0
	}
	if links, err := ParseNodeLinks(c.NodeLinks); err == nil {
		texts := make([]string, len(links))
		for i, l := range links {
			texts[i], bonds = l.String(), bonds || l.Count > 1
		}
		c.NodeLinks = strings.Join(texts, "+")
	}
	if !bonds {
		c.BondMode, c.BondHash = "", ""
		return c
	}
	c.BondMode = cmp.Or(c.BondMode, DefaultBondMode)
	c.BondHash = cmp.Or(c.BondHash, DefaultBondHash)
	if c.BondMode != "802.3ad" && c.BondMode != "balance-xor" && c.BondMode != "balance-tlb" {
		c.BondHash = "" // other modes don't hash
	}
	return c
}
