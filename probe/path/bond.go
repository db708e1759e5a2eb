package path

import (
	"fmt"

	"netdelta/network"
)

// gather takes the links of bonds together: what a bond carried is what its links carried, by their own counters. A bond
// of which one link is not known is not known either.
func gather(changed map[network.Device]change, bonds []network.Bond) map[network.Device]change {
	for _, b := range bonds {
		whole, there := changed[b.Device]
		if !there {
			continue
		}
		sum := change{lost: whole.lost}
		for _, link := range b.Members() {
			c, there := changed[link]
			switch {
			case !there && sum.lost == "":
				sum.lost = fmt.Sprintf("is without its link %s, as it seems,", link.Name)
			case c.lost != "" && sum.lost == "":
				sum.lost = fmt.Sprintf("is not known, since its link %s %s", link.Name, c.lost)
			}
			sum.sent, sum.received = sum.sent.plus(c.sent), sum.received.plus(c.received)
			sum.wrapped = sum.wrapped || c.wrapped
			delete(changed, link)
		}
		changed[b.Device] = sum
	}
	return changed
}
