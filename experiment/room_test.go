package experiment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"netdelta/experiment/record"
	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/workload"
)

// The figures behind roomFor were measured of these cells: 4, 8 and 160 on four networks took 298, 505 and 818 files at the most.
func TestRoomIsTheLeastThatWasMeasured(t *testing.T) {
	cells := func(networks, settings int) (all []result.Cell) {
		for n := range networks {
			for s := range settings {
				all = append(all, result.Cell{Network: fmt.Sprint(n), Placement: result.CrossNode, Params: result.Params{Connections: s}})
			}
		}
		return all
	}
	for _, c := range []struct{ networks, settings, files int }{{4, 1, 298}, {8, 1, 505}, {4, 40, 818}} {
		r := roomFor(cells(c.networks, c.settings), false, 7)
		if r.files > c.files || r.files < c.files*9/10 {
			t.Errorf("%d networks and %d settings: %d files, measured %d", c.networks, c.settings, r.files, c.files)
		}
	}
	if one, all := roomFor(cells(1, 1), true, 7), roomFor(cells(8, 1), true, 7); one.namespaces != all.namespaces {
		t.Errorf("networks that are swapped take %d namespaces, one takes %d", all.namespaces, one.namespaces)
	}
}

// A target has tables of one size: what they take there is said beforehand, and cells with others are refused.
func TestTargetHasOneSizeOfTables(t *testing.T) {
	p := Plan{demands: map[string]workload.Demand{}}
	for id, key := range map[string]string{"few": "4 tables", "again": "4 tables", "many": "10 tables"} {
		p.demands[id] = workload.Demand{Put: workload.Put{Key: key, Disk: 30 << 30, Within: 2 * time.Hour}}
	}
	why := p.crowded()
	for _, c := range []struct{ id, target, says string }{{"few", "mysql://a/x", ""}, {"again", "mysql://a/x", ""}, {"many", "mysql://a/x", "has 4 tables; measure 10 tables in a run of its own"}, {"many", "mysql://b/x", ""}} {
		if got, err := why(result.Cell{ID: c.id, Params: result.Params{Target: c.target}}); err != nil || !strings.Contains(got, c.says) || (c.says == "") != (got == "") {
			t.Errorf("%s in %s: %q, %v", c.id, c.target, got, err)
		}
	}
	if len(p.Notes) != 2 || !strings.Contains(p.Notes[0], "4 tables ") || !strings.Contains(p.Notes[0], "mysql://a/x") || !strings.Contains(p.Notes[0], "30GiB") || !strings.Contains(p.Notes[0], "2h") {
		t.Errorf("notes %q", p.Notes)
	}
}

// What the machine is short of is named with the fix, and nothing else is refused.
func TestShortOfRoom(t *testing.T) {
	need := room{files: 300, namespaces: 60, memory: 100 << 20}
	for name, c := range map[string]struct {
		have room
		says []string
	}{
		"enough":     {need, nil},
		"files":      {room{299, 60, 100 << 20}, []string{"at least 300 open files", "the limit is 299", "ulimit -n"}},
		"namespaces": {room{300, 59, 100 << 20}, []string{"60 network namespaces", "sysctl -w user.max_net_namespaces"}},
		"memory":     {room{300, 60, 99 << 20}, []string{"of memory at once", "control group"}},
	} {
		err := need.in(c.have)
		if c.says == nil && err != nil || c.says != nil && !errors.Is(err, record.ErrNothing) {
			t.Errorf("%s: the error is %v", name, err)
		}
		for _, words := range c.says {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%s: the error does not say %q: %v", name, words, err)
			}
		}
	}
	if err := machine.CheckProc(); err != nil {
		t.Error(err)
	}
}
