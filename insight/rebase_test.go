package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
)

// Against another baseline there is what the record has of the two, seen from the right side, and nothing else.
func TestAgainst(t *testing.T) {
	run := runOf(measured("routed", "slower", 9, 10, 11), measured("vxlan", "slower", 29, 30, 31), measured("geneve", "slower", 39, 40, 41))
	run.Contrasts = run.Contrasts[:2] // of geneve against vxlan there is none
	for i := range run.Contrasts {
		c := &run.Contrasts[i]
		c.Ratio, c.RatioLow, c.RatioHigh = 0.8, new(float64), new(float64)
		*c.RatioLow, *c.RatioHigh = 0.79, 0.81
	}
	part := insight.Parts(run)[0]
	got := part.Against("routed")
	if names := insight.Names(got); len(got) != 3 || names[0] != "host" || names[1] != "vxlan" || names[2] != "geneve" {
		t.Fatalf("against routed stand %q", names)
	}
	host, vxlan := got[0], got[1]
	if math.Abs(host.Ratio-1/1.1) > 1e-9 || math.Abs(*host.RatioLow-1/1.11) > 1e-9 || math.Abs(*host.RatioHigh-1/1.09) > 1e-9 || host.Verdict != "faster" {
		t.Errorf("host against routed is %+v", host)
	}
	c := run.Contrasts[0]
	if c.Cell != "routed" || c.Other != "vxlan" {
		t.Fatalf("the first contrast is %+v", c)
	}
	if math.Abs(vxlan.Ratio*c.Ratio-1) > 1e-9 || math.Abs(*vxlan.RatioLow**c.RatioHigh-1) > 1e-9 || vxlan.Verdict != "slower" {
		t.Errorf("vxlan against routed is %+v, the record has %+v", vxlan, c)
	}
	if vxlan.DifferenceLow != nil || vxlan.Difference != 0 {
		t.Errorf("a difference in time was made up: %+v", vxlan)
	}
	if got := insight.Names(part.Against("vxlan")); len(got) != 2 {
		t.Errorf("against vxlan stand %q, want host and routed alone", got)
	}
	if got := part.Against("sockmap"); got != nil {
		t.Errorf("against what was not measured stand %q", insight.Names(got))
	}
}
