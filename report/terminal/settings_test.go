package terminal

import (
	"bytes"
	"strings"
	"testing"

	"netdelta/insight"
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
		tables, told := strings.Count(out.String(), "\ntcp-rr, 1")-strings.Count(out.String(), " across nodes: "), strings.Contains(out.String(), "976 more settings")
		if want := map[bool]int{true: settingsMost, false: settings}[interactive]; tables != want || told != interactive {
			t.Errorf("interactive %v: %d tables, want %d; told of the rest: %v", interactive, tables, want, told)
		}
		if !strings.Contains(out.String(), "1700B") {
			t.Errorf("interactive %v: the setting that differs most is not shown", interactive)
		}
	}
}

// A network whose delta depends on the state of the machine is named beneath its table.
func TestDeltaByStateIsTold(t *testing.T) {
	run := sample()
	says := "vxlan against host: +38% while the machine was fast, +45% while slow"
	run.Checks = append(run.Checks, result.Check{Trial: run.Deltas[0].Cell, Check: "state", Observed: says})
	var out bytes.Buffer
	if err := Write(&out, run, View{Terminal: ui.Terminal{Width: 100, Unicode: true}}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), says+".") != 1 {
		t.Errorf("not told once:\n%s", &out)
	}
}

// The default begins with the answer, leaves the details to -v, says why something could not be measured, and ends with the next command.
func TestBrief(t *testing.T) {
	run := sample()
	run.Run = "r"
	plugin := across().cell("cni:my.conflist", result.RoleCell)
	plugin.Unsupported = "network cni:my.conflist is unsupported: needs the CNI plugin absent"
	run.Cells = append(run.Cells, plugin)
	run.Environment.Findings = []result.Finding{{Topic: "clock", Says: "hpet"}}
	run.Checks = append(run.Checks, result.Check{Check: insight.CheckScatter, Trial: "t", Observed: "2", Expected: "1"})
	run.Correlations = []result.Correlation{{Setting: result.Setting{Workload: "http"}, RawWorkload: "tcp-rr", RawMetric: "p50"}} // over too few networks for an interval
	var brief, whole bytes.Buffer
	for out, verbose := range map[*bytes.Buffer]bool{&brief: false, &whole: true} {
		if err := Write(out, run, View{Terminal: ui.Terminal{Width: 100, Unicode: true}, Verbose: verbose, Folder: "runs/r"}); err != nil {
			t.Fatal(err)
		}
	}
	for text, inBrief := range map[string]bool{
		"what was checked: netdelta show -v runs/r": true, "cni:my.conflist: needs the CNI plugin absent": true, "run them with --testbed vm": true,
		"1 finding of the doctor": true, "null check   host, set up twice": false, "clock: hpet": false,
		"checks that found something: loss, scatter": true, "Applications against raw figures": false,
	} {
		if got := strings.Contains(strings.Join(strings.Fields(brief.String()), " "), strings.Join(strings.Fields(text), " ")); got != inBrief {
			t.Errorf("%q in the short form: %v\n%s", text, got, &brief)
		}
	}
	for _, text := range []string{"clock: hpet", "Applications against raw figures"} {
		if !strings.Contains(whole.String(), text) {
			t.Errorf("-v lacks %q", text)
		}
	}
	lines := strings.Split(strings.TrimSpace(brief.String()), "\n")
	if answer := strings.Index(brief.String(), "tcp-rr, 300B, across nodes: macvlan is the same"); answer < 0 || answer > strings.Index(brief.String(), "What to do") {
		t.Errorf("the answer does not come first:\n%s", &brief)
	}
	if last := lines[len(lines)-1]; last != "next         netdelta run --resume runs/r --time-budget 2m" {
		t.Errorf("the last line is %q", last)
	}
	var called bytes.Buffer
	if err := Write(&called, run, View{Terminal: ui.Terminal{Width: 100}, Folder: "runs/r", Program: "bin/netdelta"}); err != nil || !strings.HasSuffix(called.String(), "\nnext         bin/netdelta run --resume runs/r --time-budget 2m\n") {
		t.Errorf("%v: called by a path, the last line is another:\n%s", err, called.String())
	}
	if brief.Len() >= whole.Len() {
		t.Error("the short form is not shorter")
	}
}
