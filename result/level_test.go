package result

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/unit"
)

func TestLevelsAreNamedExactly(t *testing.T) {
	for _, c := range []struct {
		conditions Conditions
		want       string
	}{
		{Conditions{LinkRate: 2.5 * unit.Gbit}, "link.rate=2.5Gbit/s"},
		{Conditions{LinkRate: 1000001}, "link.rate=1000.001kbit/s"},
		{Conditions{LinkDelay: 10 * time.Millisecond}, "link.delay=10ms"},
		{Conditions{LinkDelay: 50 * time.Microsecond}, "link.delay=50us"},
		{Conditions{LinkDelay: time.Minute}, "link.delay=1m"},
		{Conditions{LinkLoss: 0.01}, "link.loss=1%"},
		{Conditions{LinkLoss: 0.07}, "link.loss=7%"},
		{Conditions{LinkLoss: 0.5}, "link.loss=50%"},
		{Conditions{LinkLoss: 0.00025}, "link.loss=0.025%"},
		{Conditions{LinkLoss: 0.0123456789}, "link.loss=1.23456789%"},
		{Conditions{LinkCount: 4, BondHash: "layer3+4"}, "bond=4x802.3ad,layer3+4"},
		{Conditions{LinkCount: 2, BondMode: "active-backup", BondHash: "layer2"}, "bond=2xactive-backup"},
		{Conditions{NodeLinks: "node3:10Gbit@1ms+node0:1x25Gbps"}, "link.nodes=node0:25Gbit/s+node3:10Gbit/s@1ms"},
		{Conditions{NodeLinks: "node0:2x25Gbit/s", BondHash: "layer3+4"}, "link.nodes=node0:2x25Gbit/sbond=1x802.3ad,layer3+4"},
		{Conditions{NodeLinks: "node0:2x25Gbit/s", LinkCount: 4}, "link.nodes=node0:2x25Gbit/sbond=4x802.3ad,layer2"},
		{Conditions{GRO: Off}, "offload.gro=off"},
		{Conditions{RPS: On}, "rps=on"},
		{Conditions{Policy: PolicyNFTables, PolicyRules: 1000}, "policy=nftables:1000"},
		{Conditions{Policy: PolicyEBPF}, "policy=ebpf:10"},
		{Conditions{Service: ServiceIPVS, Services: 3}, "service=ipvs:3"},
		{Conditions{Encryption: WireGuard}, "encryption=wireguard"},
		{Conditions{QoS: BestEffort}, "qos=best-effort"},
		// A value that means nothing has no level.
		{Conditions{Policy: None, PolicyRules: 7}, ""},
		{Conditions{Service: ServicePod, Services: 7}, ""},
		{Conditions{Encryption: None}, ""},
		{Conditions{LinkCount: 1, BondMode: "802.3ad"}, ""},
		{Conditions{NodeLinks: None, BondMode: "802.3ad"}, ""},
	} {
		got := ""
		for _, l := range c.conditions.Levels() {
			got += l.String()
		}
		if got != c.want {
			t.Errorf("%+v has the levels %q, want %q", c.conditions, got, c.want)
		}
	}
}

// Two conditions that differ by as little as their type allows have names that differ.
func TestLevelsTellNeighboursApart(t *testing.T) {
	for _, pair := range [][2]Conditions{
		{{LinkLoss: 0.01}, {LinkLoss: 0.010000000000000002}},
		{{LinkDelay: time.Millisecond}, {LinkDelay: time.Millisecond + 1}},
		{{LinkRate: unit.Gbit}, {LinkRate: unit.Gbit + 1}},
	} {
		if pair[0].Levels()[0] == pair[1].Levels()[0] {
			t.Errorf("%+v and %+v are both %s", pair[0], pair[1], pair[0].Levels()[0])
		}
	}
}

// every is a set of conditions with this one in it, at a level that means something.
func every(t *testing.T, d Parameter) Conditions {
	t.Helper()
	p := Params{}
	set := func(d Parameter) {
		switch known := d.Known(); {
		case d.Key == "link.nodes":
			p = p.With(d, "node0:2x25Gbit/s")
		case len(known) > 0:
			p = p.With(d, known[len(known)-1])
		default:
			sample, has := map[Kind]any{KindRate: unit.Gbit, KindDuration: time.Millisecond, KindShare: 0.01, KindCount: 2}[d.Kind]
			if !has {
				t.Fatalf("%s is of a kind of which this test has no level", d.Key)
			}
			p = p.With(d, sample)
		}
	}
	for _, needed := range Parameters() {
		if needed.Key == d.Needs.Key {
			set(needed)
		}
	}
	set(d)
	return p.Conditions
}

// Each condition that is declared is among the levels that headings, records and errors name, so that none goes unsaid.
func TestEveryConditionHasItsLevel(t *testing.T) {
	conditions := 0
	for _, d := range Parameters() {
		if !strings.HasPrefix(d.Field, "Conditions.") {
			continue
		}
		conditions++
		levels := every(t, d).Levels()
		if !slices.ContainsFunc(levels, func(l Level) bool { return l.Factor == d.Factor }) {
			t.Errorf("with %s the levels are %v, without %s", d.Key, levels, d.Factor)
		}
	}
	if fields := reflect.TypeFor[Conditions]().NumField(); conditions != fields {
		t.Errorf("%d conditions are declared, and Conditions has %d fields", conditions, fields)
	}
}
