package kube

import (
	"errors"
	"strings"
	"testing"

	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// What came of trying a way is named by the nodes and by what keeps packets from passing.
func TestJudgeWay(t *testing.T) {
	whole := inside.Passing{Largest: 1500, MTU: 1500}
	cut := inside.Passing{Largest: 1450, MTU: 1500}
	deny := []Denial{{Namespace: "x", Direction: directionIn, Names: []string{"default-deny"}}}
	for name, c := range map[string]struct {
		out     inside.Outcome
		to      string
		denials []Denial
		says    []string // parts of the error; none where the way is fit
	}{
		"fit":             {inside.Outcome{Out: whole, Back: whole}, "w2", deny, nil},
		"TCP gets by":     {inside.Outcome{Out: cut, Back: whole}, "w2", nil, nil},
		"vanish":          {inside.Outcome{Out: cut, Back: whole, Stuck: true}, "w2", nil, []string{"packets above 1450 bytes vanish from w1 to w2", "MTU of 1450", "network clusterip"}},
		"vanish back":     {inside.Outcome{Out: whole, Back: cut, Stuck: true}, "w2", nil, []string{"packets above 1450 bytes vanish from w2 to w1"}},
		"denied":          {inside.Outcome{Error: "timeout"}, "w2", deny, []string{"default-deny in namespace x", "timeout", "kubectl --namespace x"}},
		"closed":          {inside.Outcome{Error: "timeout"}, "w2", nil, []string{"node w1 to one of node w2", "kube-proxy"}},
		"closed, at home": {inside.Outcome{Error: "timeout"}, "w1", nil, []string{"one pod to another of node w1"}},
	} {
		err := judgeWay(c.out, "w1", c.to, ClusterIP, c.denials)
		if (err == nil) != (len(c.says) == 0) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if _, is := errors.AsType[*testbed.BrokenError](err); err != nil && !is {
			t.Errorf("%s: no finding is made of %v", name, err)
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: no %q in %v", name, part, err)
			}
		}
	}
}
