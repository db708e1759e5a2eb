package annotations_test

import (
	"bytes"
	"strings"
	"testing"

	"netdelta/report/annotations"
	"netdelta/report/junit"
	"netdelta/result"
)

// A goal that fails is an error and a failure, one that can't be told a warning and a skip, one that passes neither.
func TestGoals(t *testing.T) {
	run := result.Run{Run: "r", Study: "s", Goals: []result.Goal{
		{Goal: "vxlan.p99 < +20%", Verdict: result.GoalFail, Measured: "vxlan +31%\n::error::x"},
		{Goal: "*.p50 < +9%", Verdict: result.GoalUnknown, Measured: "too few builds"}, {Goal: "bridge.p50 < +9%", Verdict: result.GoalPass, Measured: "bridge +1%"},
	}}
	var lines, cases bytes.Buffer
	if err := annotations.Write(&lines, run); err != nil {
		t.Fatal(err)
	}
	want := "::error title=Goal failed%3A vxlan.p99 < +20%25::vxlan +31%25 ::error::x\n::warning title=Goal unknown%3A *.p50 < +9%25::too few builds\n"
	if got := lines.String(); !strings.HasPrefix(got, want) || strings.Count(got, "\n") != 3 {
		t.Errorf("got\n%s\nwant\n%s and the summary", got, want)
	}
	if err := junit.Write(&cases, run, nil); err != nil {
		t.Fatal(err)
	}
	if want := `<testsuite name="goals" tests="3" failures="1" errors="0" skipped="1">`; !strings.Contains(cases.String(), want) {
		t.Errorf("no %s in\n%s", want, &cases)
	}
}
