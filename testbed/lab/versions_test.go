package lab_test

import (
	"strings"
	"testing"

	"netdelta/result"
	"netdelta/testbed"
)

// A testbed says which program loaded its rules, and in which of its forms.
func TestVersions(t *testing.T) {
	for policy, want := range map[string]int{result.PolicyIPTables: 1, result.PolicyNFTables: 0} {
		tb := under(t, testbed.Spec{Network: "bridge", Conditions: result.Conditions{Policy: policy}.Plain()})
		versions, err := tb.Versions()
		if err != nil {
			t.Fatal(err)
		}
		if len(versions) != want {
			t.Errorf("policy %s: versions %v, want %d", policy, versions, want)
		}
		if v := versions["iptables-restore"]; want > 0 && !strings.Contains(v, "(nf_tables)") && !strings.Contains(v, "(legacy)") {
			t.Errorf("version %q does not say which form of iptables it is", v)
		}
	}
}
