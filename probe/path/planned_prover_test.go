package path_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// A device that goes while a load is watched is named; on the way it spoils the proof, elsewhere it is only noted.
func TestDeviceVanishes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod   int
		finds []string
		notes []string
	}{
		"on the way": {0, []string{"pod0/eth0 vanished while it was watched", "node0/veth0 vanished while it was watched"}, nil},
		"elsewhere":  {1, nil, []string{"pod1/eth0 vanished while it was watched", "node0/veth1 vanished while it was watched"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := open(t, named(t, "routed"), testbed.Spec{})
			e := newEnds(t, o, 0, 2)
			run := e.trip(t, "udp", 1000, 20)
			pod := inside(t, o.Pods()[c.pod])
			p, err := path.NewPlannedProver(o).Prove(t.Context(), e.client.Pod, e.server.Pod, network.TCP, func(ctx context.Context) (path.Load, error) {
				l, err := run(ctx)
				return l, errors.Join(err, pod.Do(func() error {
					link, err := netlink.LinkByName("eth0")
					if err != nil {
						return err
					}
					return netlink.LinkDel(link)
				}))
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range c.finds {
				told(t, p, f)
			}
			if p.OK != (c.finds == nil) {
				t.Errorf("OK is %v, findings %q", p.OK, p.Findings)
			}
			for _, n := range c.notes {
				if !strings.Contains(strings.Join(p.Weak, "\n"), n) {
					t.Errorf("weak %q lacks %q", p.Weak, n)
				}
			}
		})
	}
}

// What keeps a proof from being had is an error, and leaves the testbed usable.
func TestNoProof(t *testing.T) {
	t.Parallel()
	o, other := open(t, named(t, "bridge"), testbed.Spec{}), open(t, named(t, "bridge"), testbed.Spec{})
	e := newEnds(t, o, 0, 2)
	run := e.trip(t, "udp", 1000, 20)
	prover := path.NewPlannedProver(o)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("the load broke")
	for name, c := range map[string]struct {
		ctx      context.Context
		from, to testbed.Pod
		load     func(context.Context) (path.Load, error)
		says     string
	}{
		"of a load that fails":       {t.Context(), e.client.Pod, e.server.Pod, func(context.Context) (path.Load, error) { return path.Load{}, broken }, "the load broke"},
		"of a load of nothing":       {t.Context(), e.client.Pod, e.server.Pod, func(context.Context) (path.Load, error) { return path.Load{}, nil }, "moved nothing"},
		"to oneself":                 {t.Context(), e.client.Pod, e.client.Pod, run, "not two pods"},
		"to another testbed":         {t.Context(), e.client.Pod, other.Pods()[1], run, "not two pods"},
		"of a user who has given up": {gone, e.client.Pod, e.server.Pod, run, "context canceled"},
	} {
		if _, err := prover.Prove(c.ctx, c.from, c.to, network.TCP, c.load); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "prove the path from pod0") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := prover.End(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "not begun") {
		t.Errorf("an audit that was not begun: got error %v", err)
	}
	if p, err := prover.Prove(t.Context(), e.client.Pod, e.server.Pod, network.TCP, run); err != nil || !p.OK {
		t.Errorf("afterwards: %v %q", err, p.Findings)
	}
}

// The taps of many proofs are gone when the lab is; open fails the test otherwise, and so does the package's TestMain.
func TestProofsOfManyPairs(t *testing.T) {
	t.Parallel()
	o := open(t, named(t, "vxlan-routed"), testbed.Spec{})
	prover := path.NewPlannedProver(o)
	for to := 1; to < 4; to++ {
		e := newEnds(t, o, 0, to)
		run := e.trip(t, "tcp", 3000, 10)
		for range 3 {
			p, err := prover.Prove(t.Context(), e.client.Pod, e.server.Pod, network.TCP, run)
			if err != nil || !p.OK || p.MTU != 1450 {
				t.Fatalf("to pod%d: %v %+v", to, err, p)
			}
		}
		e.close(t)
	}
}

// A whole phase adds up; what the cells did not move, or what went elsewhere, is found.
func TestAudit(t *testing.T) {
	t.Parallel()
	o := open(t, named(t, "vxlan"), testbed.Spec{})
	near, far := newEnds(t, o, 0, 1), newEnds(t, o, 0, 2)
	loads := map[*testEnds]func(context.Context) (path.Load, error){near: near.trip(t, "tcp", 20_000, 10), far: far.trip(t, "udp", 1000, 200)}
	prover := path.NewPlannedProver(o)
	if err := prover.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	var moved []path.Moved
	for range 3 {
		for e, run := range loads {
			l, err := run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			moved = append(moved, path.Moved{From: e.client.Pod, To: e.server.Pod, Protocol: l.Protocol, Requests: l.Requests, Responses: l.Responses})
		}
	}
	a, err := prover.End(t.Context(), moved)
	if err != nil || len(a.Findings) > 0 || len(a.Weak) > 0 {
		t.Errorf("%v %+v", err, a)
	}
	kept := result.Path{OK: true}
	if a.Enter(&kept); !kept.OK {
		t.Errorf("%+v", kept)
	}
	for i := range moved {
		moved[i].Requests *= 2
	}
	a, err = prover.End(t.Context(), moved)
	if said := strings.Join(a.Findings, "\n"); err != nil || !strings.Contains(said, "pod0/eth0 sent") || !strings.Contains(said, "node1/eth0 received") {
		t.Errorf("twice as much as was moved: %v %q", err, said)
	}
	if a.Enter(&kept); kept.OK || len(kept.Findings) != len(a.Findings) {
		t.Errorf("%+v", kept)
	}
	a, err = prover.End(t.Context(), nil)
	if said := strings.Join(a.Findings, "\n"); err != nil || !strings.Contains(said, "pod2/eth0, which is on no way") {
		t.Errorf("nothing was moved: %v %q", err, said)
	}
}

// asFound is a testbed whose nodes are used as they are found.
type asFound struct{ testbed.Observer }

func (f asFound) Plan() network.Plan {
	p := f.Observer.Plan()
	p.Found = true
	return p
}

// On nodes that netdelta did not build, only devices that a plan names are read. The devices between daemons are among them.
func TestAuditOfNodesAsFound(t *testing.T) {
	t.Parallel()
	o := asFound{open(t, named(t, "routed"), testbed.Spec{})}
	e := newEnds(t, o, 0, 1)
	prover := path.NewPlannedProver(o)
	prover.Background(o.Pods()[1:])
	if err := prover.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := e.trip(t, "tcp", 20_000, 10)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a, err := prover.End(t.Context(), []path.Moved{{From: e.client.Pod, To: e.server.Pod, Protocol: l.Protocol, Requests: l.Requests, Responses: l.Responses}})
	if err != nil || len(a.Findings) > 0 {
		t.Errorf("%v %+v", err, a)
	}
}

// dripping is a testbed on which something else still moves while the first readings are taken.
type dripping struct {
	testbed.Observer
	left int
	drip func()
}

func (d *dripping) Counters(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	if d.left > 0 {
		d.left--
		d.drip()
	}
	return d.Observer.Counters(ctx)
}

// What another load left behind is waited for, and not taken for a part of this one.
func TestQuietIsWaitedFor(t *testing.T) {
	t.Parallel()
	o := open(t, named(t, "routed"), testbed.Spec{})
	near, far := newEnds(t, o, 0, 1), newEnds(t, o, 0, 2)
	run, rest := near.trip(t, "udp", 1000, 20), far.trip(t, "udp", 1000, 20)
	d := &dripping{Observer: o, left: 5, drip: func() {
		if _, err := rest(t.Context()); err != nil {
			t.Error(err)
		}
	}}
	p, err := path.NewPlannedProver(d).Prove(t.Context(), near.client.Pod, near.server.Pod, network.TCP, run)
	if err != nil || !p.OK {
		t.Errorf("%v %q", err, p.Findings)
	}
	// What never falls silent is not waited for, but seen.
	d.left = 1000
	p, err = path.NewPlannedProver(d).Prove(t.Context(), near.client.Pod, near.server.Pod, network.TCP, run)
	if err != nil {
		t.Fatal(err)
	}
	told(t, p, "node1/eth0 carried")
}

// losing is a testbed that loses the first packet by which the path's MTU is found.
type losing struct {
	testbed.Observer
	lost bool
}

func (l *losing) Fit(ctx context.Context, from, to testbed.Pod, size unit.Bytes) error {
	if !l.lost {
		l.lost = true
		return nil
	}
	return l.Observer.Fit(ctx, from, to, size)
}

// One packet that does not arrive says nothing of the path's MTU.
func TestLostPacketIsNoMTU(t *testing.T) {
	t.Parallel()
	o := open(t, named(t, "routed"), testbed.Spec{})
	e := newEnds(t, o, 0, 2)
	p, err := path.NewPlannedProver(&losing{Observer: o}).Prove(t.Context(), e.client.Pod, e.server.Pod, network.UDP, e.trip(t, "udp", 1000, 20))
	if err != nil || !p.OK || p.MTU != o.Plan().PathMTU(0, 2) {
		t.Errorf("%v, MTU %d, %q", err, p.MTU, p.Findings)
	}
}
