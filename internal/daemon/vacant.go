package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// PortFree finds out that a server could listen on a TCP port in this process's network namespace, for servers that say so late,
// elsewhere or not at all. Connections of an earlier server in TIME_WAIT are no hindrance. The error matches EADDRINUSE where
// another has the port; port 0 is refused, since clients would not know which it became.
func PortFree(ctx context.Context, at netip.AddrPort) error {
	if at.Port() == 0 {
		return errors.New("port 0 is not possible: ports are pinned")
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	return l.Close()
}
