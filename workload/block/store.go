package block

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// store is what keeps the blocks that fio reads and writes. Either serve and attach are set, or cluster, or attach alone where nothing
// of netdelta's serves.
type store struct {
	name     string // of the parameter store
	programs []workload.Program
	memory   func(p load) unit.Bytes // that its servers take, all together; nil without servers
	// serve starts a server alone, which listens at an address.
	serve func(ctx context.Context, p load, listen netip.AddrPort, cpu int) (engine.Server, error)
	// attach finds out that the store answers, and says how fio reaches it.
	attach  func(ctx context.Context, p load, server netip.AddrPort) (fio.Target, error)
	cluster *cluster
}

// cluster is a store of daemons in several pods: see workload.Cluster. One serves all parameters.
type cluster struct {
	key   string
	pods  int
	serve func(ctx context.Context, at workload.Member) (engine.Server, error)
	// attach readies the client's home (files of it are written with Home.Write), finds out that the store answers, and says
	// how fio reaches it from there.
	attach func(ctx context.Context, h *daemon.Sandbox, at workload.Member) (fio.Target, error)
}

// stores are those that there are, the first by default.
func stores() []store { return []store{nbd(), rbd()} }

// storeOf is the store that p names.
func storeOf(p load) (store, error) {
	if p.StorageClass != "" {
		return volume(p.StorageClass), nil
	}
	var names []string
	for _, s := range stores() {
		if s.name == p.Store {
			return s, nil
		}
		names = append(names, s.name)
	}
	return store{}, fmt.Errorf("store %q is unknown: %s", p.Store, strings.Join(names, ", "))
}
