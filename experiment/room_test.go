package experiment

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"netdelta/experiment/record"
	"netdelta/internal/machine"
	"netdelta/result"
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
