package experiment_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed"
)

// opened is a driver that keeps count of the testbeds that were opened.
type opened struct {
	testbed.Provider

	mu       sync.Mutex
	families map[result.Family]int
}

func (d *opened) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := d.Provider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range tb.Pods() {
		if p.Address().Is6() {
			d.families[result.IPv6]++
		} else {
			d.families[result.IPv4]++
		}
	}
	return tb, nil
}

// Each version of IP has testbeds of its own, and each is held against a baseline of the same version.
func TestFamilies(t *testing.T) {
	for _, c := range []struct {
		name string
		pods int // of each version, in all testbeds of the run
		set  func(*study.Study)
	}{
		{"side-by-side", 2 * 3 * 4, func(*study.Study) {}}, // two builds of the baseline, its A/A control and the network
		{"blocks", 4, func(s *study.Study) { s.Design.Blocks = 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := small([]string{"macvlan", "bridge"}, result.CrossNode)
			s.Baseline = "bridge"
			s.Workloads = []study.Workload{{Name: "udp-rr"}}
			s.Factors = study.Levels{"family": {"ipv4", "ipv6"}}
			c.set(s)
			config := setUp(t, s, 2, nil)
			driver := &opened{Provider: config.Driver, families: map[result.Family]int{}}
			config.Driver = driver
			run := mustRun(t, config)
			for _, level := range s.Factors["family"] {
				family := result.Family(level.(string))
				if n := driver.families[family]; n != c.pods {
					t.Errorf("%d pods with %s, want %d", n, family, c.pods)
				}
			}
			deltas := map[result.Family]int{}
			for _, d := range run.Deltas {
				if d.Headline { // a busy machine may leave too few transactions for a tail
					deltas[d.Params.Family]++
				}
			}
			if deltas[""] == 0 || deltas[""] != deltas[result.IPv6] || len(deltas) != 2 {
				t.Errorf("deltas by family: %v", deltas)
			}
			for _, tr := range journal(t, config) {
				if tr.Failed != "" {
					t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
				}
			}
			for _, cell := range run.Cells {
				if six := strings.HasSuffix(cell.ID, "/ipv6"); six != (cell.Params.Family == result.IPv6) {
					t.Errorf("cell %s has the family %q", cell.ID, cell.Params.Family)
				}
			}
		})
	}
}
