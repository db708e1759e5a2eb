// Package sockets puts together what the kernel says of the sockets of a trial's both ends: what full buffers and full listen
// queues turned away, how large the buffers were, and TCP_INFO of both ends.
//
// Each end reads its own (package engine), when the trial is over, so that nothing of it is in what is measured:
// the drops of datagram sockets (SO_MEMINFO), the overflows of the listening socket (ListenOverflows of its namespace, as
// far as the socket has itself turned anything away), SO_SNDBUF and SO_RCVBUF. Loss that shows here was not the network's:
// the packets had come through it, and their receiver was too slow.
package sockets

import (
	"fmt"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/unit"
)

// Join makes the record of a trial's sockets from the totals of its client (Collect) and its server (Totals). It is nil when
// neither says anything.
func Join(client, server engine.Totals) *result.Sockets {
	if client.Sockets == nil && server.Sockets == nil && server.TCP == nil {
		return nil
	}
	joined := result.Sockets{Server: server.TCP}
	if c := client.Sockets; c != nil {
		joined = *c
		joined.Server = server.TCP
	}
	if s := server.Sockets; s != nil {
		joined.Dropped += s.Dropped
		joined.Overflows += s.Overflows
	}
	return &joined
}

// segmentMost is the largest segment that only the MTU decides on. Larger ones, as on loopback, are also bounded by half the
// window that the other end has offered so far, and differ for that.
const segmentMost = 16 << 10

// Findings are what a reader of the trial's figures has to know of its sockets, a sentence each without its full stop; none
// when all is well.
func Findings(t result.Trial) []string {
	s := t.Sockets
	if s == nil {
		return nil
	}
	var found []string
	if s.Dropped > 0 {
		found = append(found, fmt.Sprintf("full receive buffers turned away %d datagrams, which the network had delivered: "+
			"the receiver was too slow, so that the loss is not the network's alone (the client's buffer holds %s)", s.Dropped, s.ReceiveBuffer))
	}
	if s.Overflows > 0 {
		found = append(found, fmt.Sprintf("a full listen queue turned away %d connections, each of which was tried again after a second: "+
			"the server accepted too slowly", s.Overflows))
	}
	if c, v := t.TCP, s.Server; c != nil && v != nil {
		if c.CongestionControl != v.CongestionControl {
			found = append(found, fmt.Sprintf("the client's congestion control is %s, the server's %s", c.CongestionControl, v.CongestionControl))
		}
		if c.MSS != v.MSS && max(c.MSS, v.MSS) <= segmentMost {
			found = append(found, fmt.Sprintf("the client sends segments of %s, the server of %s: the MTU is not the same both ways",
				unit.Bytes(c.MSS), unit.Bytes(v.MSS)))
		}
	}
	return found
}
