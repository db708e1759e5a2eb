package terminal

import (
	"bytes"
	"strings"
	"testing"

	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/unit"
)

// A run of a thousand settings is summed up on a terminal, by those that differ most, and printed whole elsewhere.
func TestManySettings(t *testing.T) {
	const settings = 1000
	var run result.Run
	for i := range settings {
		s := setting{"tcp-rr", result.Params{Message: unit.Bytes(1000 + i)}, result.CrossNode, 1000}
		ratio := 1.0
		if i == 700 {
			ratio = 50
		}
		run.Deltas = append(run.Deltas, s.delta("vxlan", "slower", ratio-1, ratio, ratio+1))
		run.Cells = append(run.Cells, result.Cell{ID: s.id("vxlan"), Network: "vxlan", Workload: "tcp-rr", Params: s.params, Placement: s.placement, Role: result.RoleCell})
	}
	for _, interactive := range []bool{true, false} {
		var out bytes.Buffer
		if err := Write(&out, run, View{Terminal: ui.Terminal{Width: 100, Interactive: interactive, Unicode: true}, Verbose: true}); err != nil {
			t.Fatal(err)
		}
		tables, told := strings.Count(out.String(), "tcp-rr, 1"), strings.Contains(out.String(), "976 more settings")
		if want := map[bool]int{true: settingsMost, false: settings}[interactive]; tables != want || told != interactive {
			t.Errorf("interactive %v: %d tables, want %d; told of the rest: %v", interactive, tables, want, told)
		}
		if !strings.Contains(out.String(), "1700B") {
			t.Errorf("interactive %v: the setting that differs most is not shown", interactive)
		}
	}
}
