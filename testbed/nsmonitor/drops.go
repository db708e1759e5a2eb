package nsmonitor

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"

	"netdelta/result"
)

// Drops are the packets that each device, and each queueing discipline that is no part of another, has dropped so far. What dropped
// nothing is not in it.
func (g *CounterReader) Drops() ([]result.Drop, error) {
	devices, err := g.Devices()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	var all []result.Drop
	for _, d := range devices {
		if d.Dropped > 0 {
			all = append(all, result.Drop{Device: d.Name, Packets: d.Dropped})
		}
	}
	queues, err := List(func() ([]result.Drop, error) {
		var queues []result.Drop
		err := g.netlink.dump(unix.RTM_GETQDISC, make([]byte, sizeofTcmsg), func(body []byte) {
			if d, ok := parseQueue(body, g.names); ok {
				queues = append(queues, d)
			}
		})
		return queues, err
	})
	return append(all, queues...), err
}

// parseQueue takes what a queueing discipline dropped from a message about it (struct gnet_stats_queue).
func parseQueue(body []byte, names map[int]string) (result.Drop, bool) {
	if len(body) < sizeofTcmsg {
		return result.Drop{}, false
	}
	order := binary.NativeEndian
	const queueStats, dropsAt = 3, 8 // TCA_STATS_QUEUE
	d := result.Drop{Device: names[int(int32(order.Uint32(body[tcIndexAt:])))]}
	root := order.Uint32(body[tcParentAt:]) == parentRoot
	for kind, value := range attributes(body[sizeofTcmsg:]) {
		switch kind {
		case unix.TCA_KIND:
			d.Queue = string(bytes.TrimRight(value, "\x00"))
		case unix.TCA_STATS2:
			for k, v := range attributes(value) {
				if k == queueStats && len(v) >= dropsAt+4 {
					d.Packets = uint64(order.Uint32(v[dropsAt:]))
				}
			}
		}
	}
	return d, root && d.Packets > 0
}
