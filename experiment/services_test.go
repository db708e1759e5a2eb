package experiment_test

import (
	"testing"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/unit"
)

// Cells under policies and services are measured and their paths proved, also where datagrams are cut up on the way and put
// together again to be looked at.
func TestServicesAndPolicies(t *testing.T) {
	s := small([]string{"host", "vxlan"})
	s.Workloads = []study.Workload{
		{Name: "udp-rr", Levels: study.Levels{Message: []unit.Bytes{64, 3000}}}, {Name: "tcp-crr", Levels: study.Levels{Message: []unit.Bytes{64}}},
	}
	s.Factors = study.Levels{Conditions: study.ConditionLevels{
		Policy: []string{result.PolicyNFTables}, PolicyRules: []int{100}, Service: []string{result.ServicePod, result.ServiceNFTables}, Services: []int{100},
	}}
	c := setUp(t, s, 1, nil)
	run := mustRun(t, c)
	trials := journal(t, c)
	if want := len(run.Cells); len(trials) != want {
		t.Errorf("%d trials, want %d", len(trials), want)
	}
	for _, tr := range trials {
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
		if tr.Path == nil || !tr.Path.OK {
			t.Errorf("%s: path %+v", tr.ID(), tr.Path)
		}
	}
}
