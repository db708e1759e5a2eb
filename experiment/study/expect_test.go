package study

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseExpectation(t *testing.T) {
	got, err := ParseExpectation("p50 of vxlan, bridge above host by 5us..10us where placement=same-node, message=300|500; cpu of udp-tun within 2% of each other")
	if err != nil {
		t.Fatal(err)
	}
	want := Expectation{
		{
			Metric: "p50", Networks: []string{"vxlan", "bridge"}, Relation: Above, Against: []string{"host"},
			Low: Amount{Absolute: 5 * time.Microsecond}, High: Amount{Absolute: 10 * time.Microsecond},
			Where: []Condition{{"placement", []string{"same-node"}}, {"message", []string{"300", "500"}}},
		},
		{Metric: "cpu", Networks: []string{"udp-tun"}, Relation: EachOther, Low: Amount{Relative: 0.02}, High: Amount{Relative: 0.02}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseExpectationRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                                             `unknown metric the end: known are cpu, loss, mean, min, p50, p90, p99, p99.9, throughput`,
		"p5 of host below vxlan":                       `unknown metric "p5": did you mean "p50"?`,
		"p50 host below vxlan":                         `want of, not "host"`,
		"p50 of host near vxlan":                       `want below or above or within or changes, not "near"`,
		"p50 of host, below vxlan":                     `want below or above or within or changes, not "vxlan"`,
		"p50 of host, host below vxlan":                `network host is there twice`,
		"p50 of host below":                            `want the name of a network, not the end`,
		"p50 of host below <b>":                        `want the name of a network, not "<b>"`,
		"p50 of host within 5 of metal":                `want an amount such as 5% or 10us, not "5"`,
		"p50 of host within -5% of metal":              `want an amount such as 5% or 10us, not "-5%"`,
		"p50 of host within NaN% of metal":             `want an amount such as 5% or 10us, not "NaN%"`,
		"p50 of vxlan above host by 5%..2%":            `"5%..2%" is not a range`,
		"p50 of vxlan above host by 5us..2%":           `"5us..2%" is not a range`,
		"p50 of a below b where place=x":               `unknown factor "place": did you mean "placement"?`,
		"p50 of a below b where placement":             `"placement" has no value: write for example placement=same-node`,
		"p50 of a below b and more":                    `unexpected "and"`,
		"p50 of a changes between mtu=1 and x":         `unknown factor "x": known are connections, message, mtu, path, placement, rate, workload`,
		"p50 of a changes between mtu=1 and message=2": `changes between two levels of one factor, not of mtu and message`,
	} {
		if _, err := ParseExpectation(in); err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", in, err, want)
		}
	}
}
