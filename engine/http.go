package engine

import (
	"strconv"
	"unsafe"

	"netdelta/internal/native"
	"netdelta/unit"
)

const (
	// webBuffer is what a client of HTTP reads at once: enough that large files cost few system calls, and within a
	// processor's second-level cache.
	webBuffer = 128 << 10
	// maxFailures is how many requests may fail in a row, for each connection, before a burst is given up.
	maxFailures = 100
	// fileWarmed is the largest file that is fetched several times over to warm connections up.
	fileWarmed = unit.MiB
)

// webWarmup is how many requests warm a client's connections up.
func webWarmup(cfg *Config) int64 {
	const few = 16
	switch {
	case cfg.Params.File > fileWarmed:
		return 1
	case cfg.opens():
		return few // no connection stays
	}
	return max(few, 2*int64(cfg.connections()))
}

// webArena is what a loop that speaks HTTP needs in addition to what all need.
func webArena(conns int) uintptr { return native.Reserved(uintptr(conns) * headRoom) }

// prepareWeb tells a loop what to ask for, and what to expect.
func (c *control) prepareWeb(cfg *Config, arena *native.Arena) {
	w := &c.web
	w.heads = (*[MaxConnections][headRoom]byte)(arena.Take(uintptr(c.conns) * headRoom))
	w.request = uintptr(copy(unsafe.Slice((*byte)(c.out), webBuffer), cfg.Request))
	w.room = webBuffer
	w.body = uintptr(cfg.Params.File)
	w.digits = int32(copy(w.length[:], strconv.FormatInt(int64(cfg.Params.File), 10)))
	w.reconnect = cfg.Params.Reconnect
	w.patience = maxFailures * int64(c.conns)
	for i := range c.conns {
		c.connection[i].fd = -1
	}
	if c.ports > 1 {
		// In addition to the ports of the first connections, which stay in use: for connections that take the place of broken ones.
		if c.ports += uint32(c.conns); !w.reconnect {
			c.port = uint32(c.conns)
		}
	}
}
