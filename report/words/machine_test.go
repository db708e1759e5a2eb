package words

import (
	"slices"
	"strings"
	"testing"

	"netdelta/result"
)

// TestMachine: what the record knows of the place of a run is named, and nothing else.
func TestMachine(t *testing.T) {
	lab := result.Run{Testbed: "lab", Environment: result.Environment{
		Kernel: "6.18.5", Virtual: "kvm", CPU: result.CPU{Count: 2, Model: "Intel(R)  Xeon(R) Processor"},
	}}
	cluster := result.Run{Testbed: "kubernetes", Environment: result.Environment{
		Cluster: &result.Cluster{Version: "v1.34.4", Network: "flannel", Nodes: []result.ClusterNode{{}, {}}}, CPU: result.CPU{Count: 1},
	}}
	for name, c := range map[string]struct {
		run  result.Run
		want []string
	}{
		"lab":     {lab, []string{"lab (namespaces of one machine)", "2 processors (Intel Xeon Processor)", "virtual machine (kvm)", "Linux 6.18.5"}},
		"cluster": {cluster, []string{"kubernetes", "Kubernetes v1.34.4", "flannel", "2 nodes", "1 processor"}},
		"unknown": {result.Run{}, nil},
	} {
		if got := Machine(c.run); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBrief: an entry keeps whole clauses, as many as fit, and loses none.
func TestBrief(t *testing.T) {
	a := result.Advice{Says: "Take b.", Why: "It is faster; it costs less CPU; others do so."}
	for most, want := range map[int]string{0: "", 24: "It is faster.", 45: "It is faster; it costs less CPU.", 99: a.Why} {
		why, rest := Brief(a, func(text string) bool { return len(text) <= most })
		all := strings.TrimPrefix(strings.TrimSuffix(why, ".")+"; "+strings.Join(rest, "; ")+".", "; ")
		if why != want || strings.Replace(all, "; .", ".", 1) != a.Why {
			t.Errorf("in %d characters: %q and %q, want %q", most, why, rest, want)
		}
	}
	if why, rest := Brief(result.Advice{Says: "Take b."}, func(string) bool { return true }); why != "" || rest != nil {
		t.Errorf("without a reason: %q and %q", why, rest)
	}
}
