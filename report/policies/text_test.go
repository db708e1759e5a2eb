package policies

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"netdelta/experiment/policies"
	insight "netdelta/insight/policies"
	"netdelta/internal/golden"
)

func TestWriteText(t *testing.T) {
	o := policies.Outcome{Every: 4 * time.Millisecond, Disturbed: 1, Failures: []policies.Failure{{Policies: 1000, Why: "no room\x1b[31m"}}}
	for i := range 6 {
		after := time.Duration(20+i) * time.Millisecond
		for _, change := range []policies.Change{policies.Refused, policies.Passing} {
			o.Samples = append(o.Samples, policies.Sample{
				Policies: 1, Change: change, Request: 5 * time.Millisecond, Before: after - 4*time.Millisecond, After: after, ClockError: time.Millisecond,
			})
			after *= 3
		}
	}
	o.Samples = append(o.Samples, policies.Sample{Policies: 100, Change: policies.Refused, After: -time.Millisecond, Before: -5 * time.Millisecond})
	for i, slips := range []int{0, 3} {
		admitted := policies.Sample{Policies: 100, Change: policies.Admitted, Before: 300 * time.Millisecond, After: 304 * time.Millisecond}
		barred := policies.Sample{Policies: 100, Change: policies.Barred, Slipped: slips, After: time.Duration(i) * 16 * time.Millisecond}
		o.Samples = append(o.Samples, admitted, barred, policies.Sample{Policies: 1, Change: policies.Barred})
	}
	var b bytes.Buffer
	if err := WriteText(&b, insight.Judge(o)); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "policies.txt"), b.String())
}
