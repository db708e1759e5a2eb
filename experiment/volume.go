package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"netdelta/experiment/plan"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// volumeWithin is how long a client may take to open whose volume has to be filled first.
const volumeWithin = 10 * time.Minute

// alone says whether a cell's client speaks to no server of netdelta's.
func alone(c result.Cell) bool { return c.Params.Target != "" || c.Params.StorageClass != "" }

// volumeOf is the volume that a cell's client needs, which may be none.
func (p *Plan) volumeOf(c result.Cell) testbed.Volume {
	return testbed.Volume{Class: c.Params.StorageClass, Size: p.demands[c.ID].Volume}
}

// refuseUnstored takes out cells whose client can't have its volume. The error says what is wrong with a class.
func (p *Plan) refuseUnstored(ctx context.Context, driver testbed.Provider) error {
	asked := map[string]bool{}
	for i, c := range p.Cells {
		class := c.Params.StorageClass
		if class == "" || c.Unsupported != "" {
			continue
		}
		stored := driver.Capabilities().Stored
		switch {
		case stored == nil:
			p.Cells[i].Unsupported = fmt.Sprintf("storage class %s is unsupported on testbed %s: needs a cluster that makes volumes of it; run it with --testbed kubernetes, or measure a store of netdelta's own", class, driver.Kind())
			continue
		case c.Placement != result.SameNode:
			p.Cells[i].Unsupported = fmt.Sprintf("a volume of storage class %s across nodes is unsupported: it is mounted on the node of the pod that uses it, and where its blocks are is up to its class; measure placement %s", class, result.SameNode)
			continue
		case asked[class]:
			continue
		}
		asked[class] = true
		says, err := stored(ctx, p.volumeOf(c))
		if err != nil {
			return fmt.Errorf("storage class %s: %w", class, err)
		}
		for _, sentence := range says {
			p.note(sentence)
		}
	}
	return nil
}

// largest is the largest volume that cells need which share a testbed.
func (st *stage) largest(cells []result.Cell) unit.Bytes {
	var most unit.Bytes
	for _, c := range cells {
		most = max(most, demandOf(st.workloads, c).Volume)
	}
	return most
}

// withVolume is a testbed whose one pod has a volume: there is no server that it would have to be apart from.
func withVolume(spec testbed.Spec, class string) testbed.Spec {
	spec.Nodes, spec.PodsPerNode, spec.Volume = 1, 1, testbed.Volume{Class: class}
	return spec
}

// tryVolumes makes a volume of each class and opens a client there, as will be done for all that is measured: one that can't be had is
// said before anything is.
func (st *stage) tryVolumes(ctx context.Context, cells []result.Cell) error {
	tried := map[string]bool{}
	for _, c := range plan.Measured(cells) {
		class := c.Params.StorageClass
		if class == "" || tried[class] {
			continue
		}
		tried[class] = true
		if err := st.tryVolume(ctx, c); err != nil {
			return fmt.Errorf("before anything was measured: a volume of storage class %s: %w", class, err)
		}
	}
	return nil
}

// tryVolume arms a cell whose trial nobody keeps.
func (st *stage) tryVolume(ctx context.Context, c result.Cell) error {
	b := &build{}
	var failed error
	for _, s := range st.openGroup(ctx, b, groupOf(c), []result.Cell{c}) {
		if failed = s.failed; failed == nil {
			s.disarm(ctx)
			failed = s.failed
		}
		s.failed = errors.New("it was a trial") // there is nothing to collect
		_ = s.trial(ctx, 0)
	}
	return errors.Join(failed, b.close())
}

// dialVolume opens a client in a volume of its pod.
func (s *seat) dialVolume(ctx context.Context) (int, error) {
	return s.client.DialWithin(ctx, s.cell.Workload, s.cell.Params, netip.AddrPort{}, netip.AddrPort{}, s.cpus.client, volumeWithin)
}
