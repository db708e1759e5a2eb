package agent

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netdelta/result"
	"netdelta/testbed/rpc"
	"netdelta/workload"
)

// tidy is a target in which something is put, and taken away.
type tidy struct{ there *atomic.Int64 }

func (d tidy) Found() workload.Found { return workload.Found{Mark: "m", Undo: "by hand"} }

func (d tidy) Close() error { d.there.Add(-1); return nil }

// An agent whose input ends takes away what it has put into targets, also into one that it was about to hold.
func TestTargetsAreLeftClean(t *testing.T) {
	var there, cleared atomic.Int64
	began := make(chan struct{}, 2)
	w := workload.Workload{Name: "tidy", Target: &workload.Targeted{
		Hold: func(ctx context.Context, _ result.Params, t workload.Target) (workload.Held, error) {
			there.Add(1)
			began <- struct{}{}
			if t.Port != 80 {
				return tidy{&there}, nil
			}
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond) // it takes what there is of it away
			there.Add(-1)
			return nil, errors.New("given up")
		},
		Clear: func(_ context.Context, _ workload.Target, mark string) error {
			if mark == "m" {
				cleared.Add(1)
			}
			return nil
		},
	}}
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(theirs, theirs, []workload.Workload{w}) }()
	conn := rpc.NewConn(ours, true)
	ask := func(op, url, mark string) {
		args := openArgs{Workload: "tidy", Target: targetArgs{URL: url, Mark: mark}, Within: time.Minute}
		_, _ = rpc.Ask[any](t.Context(), conn, op, args) // the last is never answered
	}
	ask(opClear, "http://192.0.2.1/", "m")
	ask(opHold, "http://192.0.2.1:81/", "")
	go ask(opHold, "http://192.0.2.1:80/", "")
	<-began
	<-began
	_ = conn.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if there.Load() != 0 || cleared.Load() != 1 {
		t.Errorf("%d are left, %d cleared", there.Load(), cleared.Load())
	}
	g := heldTargets{over: true}
	if _, err := g.take(func() (workload.Held, error) { return tidy{&there}, nil }); err == nil || !strings.Contains(err.Error(), "about to end") {
		t.Errorf("a target was held after the end: %v", err)
	}
}
