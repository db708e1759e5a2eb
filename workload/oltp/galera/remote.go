package galera

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"time"

	"netdelta/internal/daemon"
	"netdelta/result"
)

// Galera sums up what replication took since its figures were last cleared, which it does by a timer alone, of a second at
// least: keptFigures keeps them for longer than a trial, clearedFigures has them cleared in a second.
const (
	keptFigures    = "evs.stats_report_period=PT1H"
	clearedFigures = "evs.stats_report_period=PT1S"
)

// clearTime is how long clearing may take. Figures that were not cleared by then hold more than the trial's.
const clearTime = 3 * time.Second

// statusTime is how long a node may be out of reach around a burst: a network that was just swapped takes a moment.
const statusTime = 5 * time.Second

// Remote is a node as a client in another pod sees it.
type Remote struct {
	Home    *daemon.Sandbox
	Address netip.AddrPort
	stale   int64 // samples of the figures of replication that are being cleared
}

// Clear has the node clear its figures of replication. AwaitClear waits for it.
func (r *Remote) Clear(ctx context.Context) error {
	now, err := r.Replication(ctx)
	if err != nil || now == nil {
		return err
	}
	r.stale = now.Samples
	return r.set(ctx, clearedFigures)
}

// AwaitClear returns when the figures are cleared, and has them kept from then on.
func (r *Remote) AwaitClear(ctx context.Context) error {
	if r.stale == 0 {
		return nil
	}
	for begin := time.Now(); time.Since(begin) < clearTime; time.Sleep(poll) {
		now, err := r.Replication(ctx)
		if err != nil {
			return err
		}
		if now == nil || now.Samples < r.stale {
			break
		}
	}
	r.stale = 0
	return r.set(ctx, keptFigures)
}

func (r *Remote) set(ctx context.Context, option string) error {
	_, err := askRemote(ctx, r.Home, r.Address, "set global wsrep_provider_options='"+option+"'")
	return err
}

// Replication is what replication has taken so far; nil where nothing was replicated.
func (r *Remote) Replication(ctx context.Context) (*result.Replication, error) {
	for begin := time.Now(); ; time.Sleep(poll) {
		rows, err := askRemote(ctx, r.Home, r.Address, statusStatement)
		if err == nil || errors.Is(err, daemon.ErrClosed) || ctx.Err() != nil || time.Since(begin) > statusTime {
			return readStatus(rows).replication(), err
		}
	}
}

// askRemote has the database at an address run statements.
func askRemote(ctx context.Context, home *daemon.Sandbox, at netip.AddrPort, statements string) (string, error) {
	return ask(ctx, home, statements, "--host="+at.Addr().String(), "--port="+strconv.Itoa(int(at.Port())), "--protocol=tcp", "--user="+userName)
}
