package study

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"netdelta/experiment/studies"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// expectation reads claims with the parameters of all workloads.
func expectation(s string) (Expectation, error) {
	return ParseExpectation(s, workload.Parameters(catalogue.Workloads())...)
}

func TestParseExpectation(t *testing.T) {
	got, err := expectation("p50 of vxlan, bridge above host by 5us..10us where placement=same-node, message=300|500; cpu of udp-tun, ovs within 2% of each other")
	if err != nil {
		t.Fatal(err)
	}
	want := Expectation{
		{
			Metric: "p50", Networks: []string{"vxlan", "bridge"}, Relation: Above, Against: []string{"host"},
			Low: Amount{Absolute: 5 * time.Microsecond}, High: Amount{Absolute: 10 * time.Microsecond},
			Where: []Condition{{"placement", []string{"same-node"}}, {"message", []string{"300", "500"}}},
		},
		{Metric: "cpu", Networks: []string{"udp-tun", "ovs"}, Relation: EachOther, Low: Amount{Relative: 0.02}, High: Amount{Relative: 0.02}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestTwoFormsOfAClause holds comparisons of deltas against the same in words, and both against what is printed.
func TestTwoFormsOfAClause(t *testing.T) {
	for comparison, words := range map[string]string{
		"tcp-rr p50, cross-node: macvlan/host < bridge/host": "p50 of macvlan below bridge where workload=tcp-rr, placement=cross-node",
		"p99.9: vxlan/host > bridge/host":                    "p99.9 of vxlan above bridge",
		"p50:vxlan/host>1.2":                                 "p50 of vxlan above host by 20%",
		"p50: vxlan / host > 120%":                           "p50 of vxlan above host by 20%",
		"p50: vxlan/host > 1":                                "p50 of vxlan above host",
		"p50: bridge/host < 1":                               "p50 of bridge below host",
		"p50: bridge/host < 1.05":                            "p50 of bridge at most 5% above host",
		"p50: bridge/host - 1 < 5%":                          "p50 of bridge at most 5% above host",
		"p50: bridge/host -1 > 0.05":                         "p50 of bridge above host by 5%",
		"p50: bridge/host - 1 > -5%":                         "p50 of bridge at most 5% below host",
		"throughput: vxlan/host > 0.8":                       "throughput of vxlan at most 20% below host",
		"throughput: vxlan/host < 0.8":                       "throughput of vxlan below host by 20%",
		"p50, message=300|64KiB, same-node: a < b":           "p50 of a below b where message=300|64KiB, placement=same-node",
		"p50, family=ipv6: vxlan - host < 10us":              "p50 of vxlan at most 10us above host where family=ipv6",
		"p50: vxlan - host > 1ms":                            "p50 of vxlan above host by 1ms",
		"p50: host - vxlan < -5us":                           "p50 of host below vxlan by 5us",
		"p50: host - vxlan > -5us":                           "p50 of host at most 5us below vxlan",
		"p50: host - vxlan < 0us":                            "p50 of host below vxlan",
		"p50: a > b; p90, rate=1Gbit/s: a/c < b/c":           "p50 of a above b; p90 of a below b where rate=1Gbit/s",
	} {
		want, err := expectation(words)
		if err != nil {
			t.Errorf("%q: %v", words, err)
			continue
		}
		got, err := expectation(comparison)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", comparison, err, d)
		}
		if expectationWords(got) != words {
			t.Errorf("%q is printed as %q, want %q", comparison, expectationWords(got), words)
		}
	}
}

// TestEffectsInWords: what is printed of clauses about two levels is how they are best written.
func TestEffectsInWords(t *testing.T) {
	for text, printed := range map[string]string{
		"p50 of host rises at least 10% between policy=none and policy=iptables":                              "p50 of host rises by 10% between policy=none and policy=iptables",
		"p50 of host rises between policy.rules=10 and policy.rules=1000":                                     "",
		"throughput of a, b falls by 5%..20% between link.loss=0 and link.loss=1% where placement=cross-node": "",
		"p50 of host rises by 19ms..21ms between link.delay=0s and link.delay=10ms":                           "",
		"p50 of others stays within 5% between policy.rules=10 and policy.rules=10000 where policy=ebpf":      "",
	} {
		e, err := expectation(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want := printed
		if want == "" {
			want = text
		}
		if expectationWords(e) != want || !e[0].BetweenLevels() || !e[0].OfEffect() {
			t.Errorf("%q is printed as %q, want %q", text, expectationWords(e), want)
		}
	}
}

func TestParseExpectationRefuses(t *testing.T) {
	const metrics = "cpu, loss, mean, min, no_drop, p50, p50_at_10, p50_at_50, p50_at_90, p90, p99, p99.9, partial_drop, rate, request, response, throughput"
	const factors = "block, bond.mode, bond.xmit_hash_policy, bridge_netfilter, busy_poll, client_pods, clients, congestion_control, connections, cpu, data, depth, encryption, engine, " +
		"family, file, from, fsync, io, iterations, link.count, link.delay, link.loss, link.nodes, link.rate, message, mix, mtu, nagle, offload.gro, offload.gso, offload.lro, " +
		"offload.tso, operation, osds, path, placement, policy, policy.pods, policy.rules, qos, rate, reads, reconnect, regime, request_rate, rows, rps, servers, service, service.count, storage_class, store, tables, target, threads, workload"
	for in, want := range map[string]string{
		"":                       `column 1: unknown metric the end: known are ` + metrics,
		"p5 of host below vxlan": `column 1: unknown metric "p5": did you mean "p50"?`,
		"p50 rises with throughput of tcp-stream":                    `column 5: only a rate is held against raw figures of networks: rate rises with throughput of tcp-stream`,
		"rate falls with p99 of tcp-rr":                              `column 17: want p50 of tcp-rr or throughput of tcp-stream, which are the raw figures of networks`,
		"rate rises by 5% of tcp-stream":                             `column 12: want with, not "by"`,
		"p50 host below vxlan":                                       `column 5: want of, not "host"`,
		"p50 of host rises between policy=none and policy=nope":      `column 50: unknown policy "nope": did you mean "none"?`,
		"p50 of host rises between policy=none and polcy=ebpf":       `column 43: unknown factor "polcy": did you mean "policy"?`,
		"p50 of host rises between policy=none and service=pod":      `column 43: rises between two levels of one factor, not of policy and service`,
		"p50 of host falls at most 5% between rps=on and rps=off":    `column 22: want least, not "most"`,
		"p50 of host falls by 100% between rps=on and rps=off":       `column 22: nothing is 100% below anything: the most is less than 100%`,
		"p50 of host stays between rps=on and rps=off":               `column 19: want within, not "between"`,
		"p50 of host stays within 5% between rps=on and rps=on":      `column 48: stays between two levels, not between a level and itself`,
		"p50 of host rises at least 10%":                             `column 31: want between, not the end`,
		"throughput of host rises by 5us between rps=on and rps=off": `column 29: throughput is not a time: write a percentage`,
		"p50 of host rises between link.loss=x and link.loss=1%":     `column 37: "x" is not a fraction; write 2% or 0.02`,
		"p50 of host near vxlan":                                     `column 13: want below or above or at or within or changes or rises or falls or stays, not "near"`,
		"p50 of host, below vxlan":                                   `column 20: want below or above or at or within or changes or rises or falls or stays, not "vxlan"`,
		"p50 of host, host below vxlan":                              `column 14: network host is there twice`,
		"p50 of host below":                                          `column 18: want the name of a network, not the end`,
		"p50 of host below  ; p50 of":                                `column 18: want the name of a network, not the end`,
		"p50 of host below vxlan;":                                   `column 25: unknown metric the end: known are ` + metrics,
		"p50 of host below <b>":                                      `column 19: want the name of a network, not "<"`,
		"p50 of host, vxlan below bridge, host":                      `column 34: host is held against itself`,
		"p50 of others below others":                                 `column 21: others is held against itself`,
		"p50 of host within 5 of metal":                              `column 20: want an amount such as 5% or 10us, not "5"`,
		"p50 of host within -5% of metal":                            `column 20: want an amount such as 5% or 10us, not "-5%"`,
		"p50 of host within NaN% of metal":                           `column 20: want an amount such as 5% or 10us, not "NaN%"`,
		"p50 of host within 5% of each other":                        `column 26: each other takes two networks at least`,
		"throughput of a within 5us of b":                            `column 24: throughput is not a time: write a percentage`,
		"p50 of vxlan above host by 5%..2%":                          `column 28: "5%..2%" is not a range`,
		"p50 of vxlan above host by 5us..2%":                         `column 28: "5us..2%" is not a range`,
		"p50 of vxlan above host by 5%..":                            `column 32: want an amount such as 5% or 10us, not the end`,
		"p50 of vxlan below host by 100%":                            `column 28: nothing is 100% below anything: the most is less than 100%`,
		"p50 of vxlan at most 5% near host":                          `column 25: want above or below, not "near"`,
		"p50 of a below b where place=x":                             `column 24: unknown factor "place": did you mean "placement"?`,
		"p50 of a below b where placement":                           `column 24: "placement" has no value: write for example placement=same-node`,
		"p50 of a below b where mtu=":                                `column 24: "mtu=" has no value: write for example placement=same-node`,
		"p50 of a below b where family=ipv4|ipv5":                    `column 36: unknown family "ipv5": did you mean "ipv4"?`,
		"p50 of a below b where message=x":                           `column 32: "x" is not a size: it does not start with a number; write for example "64KiB", "1500" or "1.5MiB"`,
		"p50 of a below b where mtu=1500, mtu=9000":                  `column 34: mtu is there twice: write mtu=A|B for either of two`,
		"p50 of a below b and more":                                  `column 18: unexpected "and"`,
		"p50 of a changes between mtu=1 and x":                       `column 36: unknown factor "x": known are ` + factors,
		"p50 of a changes between mtu=1 and message=2":               `column 36: changes between two levels of one factor, not of mtu and message`,
		"p50 of a changes between mtu=1 and mtu=1":                   `column 36: changes between two levels, not between a level and itself`,
		"tcp-rr p5: a < b":                                           `column 8: unknown metric "p5": did you mean "p50"?`,
		"p50, crossnode: a < b":                                      `column 6: want same-node, cross-node or KEY=VALUE, not "crossnode"`,
		"p50, same-node, cross-node: a < b":                          `column 17: placement is there twice: write placement=A|B for either of two`,
		"p50: a/host < b/bridge":                                     `column 17: a is held against host and b against bridge: a comparison has one base`,
		"p50: a/host < b":                                            `column 15: want a ratio such as 1.2 (or 20% after - 1), or NETWORK/BASE, not "b"`,
		"p50: a/host < 0":                                            `column 15: want a ratio such as 1.2 (or 20% after - 1), or NETWORK/BASE, not "0"`,
		"p50: a/host <= 1.2":                                         `column 14: want a ratio such as 1.2 (or 20% after - 1), or NETWORK/BASE, not "="`,
		"p50: a - host < 5%":                                         `column 17: want a time such as 10us, not "5%"`,
		"loss: a - host < 5us":                                       `column 18: loss is not a time: write a percentage`,
		"p50: a, b < c":                                              `column 7: want / or - or < or >, not ","`,
		"p50: a < b, c":                                              `column 14: a comparison holds one network against one: write METRIC of A below B, C for several`,
		"p50: a < b where mtu=1500":                                  `column 12: unexpected "where"`,
		"ü p50 of":                                                   `column 1: unknown metric "\u00fc": known are ` + metrics,
		"p50 of a below b where ü=1":                                 `column 24: unknown factor "\u00fc": known are ` + factors,
	} {
		_, err := expectation(in)
		if err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", in, err, want)
		}
	}
}

// TestBadExpectationsArePlaced holds that a wrong word of a claim is named with its line and column, however the claim is
// written in the file.
func TestBadExpectationsArePlaced(t *testing.T) {
	const head = "study: s\nbaseline: host\nnetworks: [host, bridge]\nworkloads: [tcp-rr]\nclaims:\n  - id: a\n    says: b\n"
	const unknown = `expect: unknown network "brigde": did you mean "bridge"?`
	for _, tc := range []struct{ expect, want string }{
		{"    expect: p50 of brigde below host\n", "f:8:20: " + unknown},
		{"    expect:   \"p50 of brigde below host\"\n", "f:8:23: " + unknown},
		{"    expect: 'tcp-rr p50: host/host < brigde/host'\n", `f:8:31: expect: host is held against itself`},
		{"    expect: 'tcp-rr p50: vxlan/host < brigde/host'\n", "f:8:39: " + unknown},
		{"    expect: >-\n      p50 of host below bridge;\n      p50 of host\n      below brigde\n", "f:11:13: " + unknown},
		{"    expect: |\n\n      p50 of\n        brigde below host\n", "f:11:9: " + unknown},
		{"    expect: p50 of host below bridge\n      where placement=same-nod\n", `f:9:23: expect: unknown placement "same-nod": did you mean "same-node"?`},
		{"    expect: >-\n      p50 of host below\n", `f:9:24: expect: want the name of a network, not the end`},
		{"    expect: 'tcp-r p50: host < vxlan'\n", `f:8:14: expect: unknown workload "tcp-r": did you mean "tcp-rr"?`},
		{"    expect: \"p50\\x20of brigde below host\"\n", `f:8:13: expect, column 8: unknown network "brigde": did you mean "bridge"?`},
	} {
		_, err := Parse("f", []byte(head+tc.expect), everythingKnown())
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s\n got %v\nwant %s", tc.expect, err, tc.want)
		}
	}
	_, err := Parse("f", []byte(head+"    expect: p50 of sriov, ipip, metal below others\n"), everythingKnown())
	if err != nil {
		t.Errorf("networks that can't be built yet: %v", err)
	}
}

func TestConditionHolds(t *testing.T) {
	cell := result.Cell{
		Network: "bridge", Placement: result.CrossNode, Path: "pod", Workload: "tcp-rr",
		Params: result.Params{Message: 1024, Connections: 4, CPU: "same", BusyPoll: 50 * time.Microsecond, Rate: 1e9, MTU: 9000},
	}
	for text, want := range map[string]bool{
		"placement=cross-node": true, "placement=same-node": false, "workload=tcp-rr": true, "workload=udp-rr|tcp-rr": true,
		"message=1KiB": true, "message=1024": true, "message=1000": false, "connections=4": true, "connections=1": false,
		"family=ipv4": true, "family=ipv6": false, "cpu=same": true, "regime=saturated": true, "regime=waking|paced": false, "busy_poll=50us": true, "rate=1Gbit/s": true,
		"mtu=9000": true, "nagle=false": true, "nagle=true": false, "path=pod": true, "path=service": false,
		"policy=none": true, "policy=ebpf": false, "service=pod": true, "link.count=1": true, "encryption=none": true, "rps=on": false,
		"link.delay=0s": true, "link.delay=10ms": false, "link.loss=1%": false, "policy.rules=10": false, "offload.tso=yes": false,
		"request_rate=0": true, "congestion_control=bbr": false, "unheard=of": false, "message=much": false,
	} {
		key, values, _ := strings.Cut(text, "=")
		if got := (Condition{key, strings.Split(values, "|")}).Holds(cell); got != want {
			t.Errorf("%s holds: %v, want %v", text, got, want)
		}
	}
	paced := cell
	paced.Params.CPU, paced.Params.RequestRate = "two", 1000
	if !(Condition{"regime", []string{"paced"}}).Holds(paced) || (Condition{"regime", []string{"waking"}}).Holds(paced) {
		t.Error("a cell that is paced is not one")
	}
	stream := cell
	if stream.Workload = "tcp-stream"; (Condition{"regime", []string{"saturated"}}).Holds(stream) {
		t.Error("a stream has a regime")
	}
	cell.Params.Rate, cell.Params.Search = 0, true
	if !(Condition{"rate", []string{"search"}}).Holds(cell) || (Condition{"rate", []string{"0"}}).Holds(cell) {
		t.Error("a cell that searches for the rate is not one")
	}
	cell.Params.Conditions = result.Conditions{Policy: "ebpf", PolicyRules: 1000, LinkLoss: 0.01, LinkCount: 2, GRO: result.Off}.Plain()
	for _, text := range []string{"policy=ebpf", "policy.rules=1000", "link.loss=1%", "link.loss=0.01", "link.count=2", "bond.mode=802.3ad", "offload.gro=off"} {
		if key, value, _ := strings.Cut(text, "="); !(Condition{key, []string{value}}).Holds(cell) {
			t.Errorf("%s does not hold", text)
		}
	}
	cell.Params.Family = result.IPv6
	if !(Condition{"family", []string{"ipv6"}}).Holds(cell) {
		t.Error("an IPv6 cell is not one")
	}
}

// FuzzParseExpectation holds that any text is either refused at a place within it, or read as something that is written and
// read back as the same.
func FuzzParseExpectation(f *testing.F) {
	for _, s := range studies.All() {
		parsed, err := Parse(s.Path(), s.Data, everythingKnown())
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range parsed.Claims {
			f.Add(c.Expect)
		}
	}
	for _, s := range []string{
		"tcp-rr p50, cross-node: macvlan/host < bridge/host", "p50: a/b - 1 < 10%", "p50: a - b > -1h", "p50 of a at most 3% below b",
		"p50 of a above b by 1us..2us where mtu=1|2", "p50 of a rises at least 3% between policy=none and policy=ebpf|iptables",
		"throughput of others falls by 1%..2% between link.loss=0 and link.loss=1% where mtu=1500", "p50 of a stays within 1us between rps=on and rps=off", "p50 of others within 1e-9% of each other", ";;", "p50: \xff/é > 1", "rate rises with throughput of tcp-stream where workload=oltp", "rate falls with p50 of tcp-rr",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := expectation(s)
		if err != nil {
			var wrong *ExpectationError
			if !errors.As(err, &wrong) || e != nil || wrong.Offset < 0 || wrong.Offset > len(s) ||
				wrong.Column < 1 || wrong.Column > utf8.RuneCountInString(s)+1 || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Fatalf("%q: %#v", s, err)
			}
			return
		}
		again, err := expectation(expectationWords(e))
		if err != nil {
			t.Fatalf("%q is printed as %q: %v", s, expectationWords(e), err)
		}
		if d := cmp.Diff(e, again); d != "" {
			t.Fatalf("%q is printed as %q, which reads otherwise: %s", s, expectationWords(e), d)
		}
	})
}

// TestDocumentedClausesMeanTheSame holds each row of the table in docs/claims.md: what is written in words against the
// comparisons next to it.
func TestDocumentedClausesMeanTheSame(t *testing.T) {
	text, err := os.ReadFile("../../docs/claims.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, both := 0, 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "` ") || !strings.Contains(cells[1], " of ") {
			continue
		}
		words, err := expectation(strings.Trim(cells[1], "` "))
		if err != nil {
			t.Error(err)
		}
		rows++
		for i, comparison := range strings.Split(cells[2], "`") {
			if i%2 == 0 {
				continue
			}
			both++
			got, err := expectation(comparison)
			if d := cmp.Diff(words, got); d != "" || err != nil {
				t.Errorf("%s: %v\n%s", comparison, err, d)
			}
		}
	}
	if rows != 15 || both != 7 {
		t.Errorf("read %d rows with %d comparisons", rows, both)
	}
}

// A comparison of two regimes leaves the rate open that only one of both has.
func TestWithoutRegime(t *testing.T) {
	waking, paced := result.Params{Message: 300, CPU: "two"}, result.Params{Message: 300, CPU: "two", RequestRate: 1000}
	if a, b := Without(waking, paced, "regime"), Without(paced, waking, "regime"); a != b {
		t.Errorf("%+v and %+v are not compared", a, b)
	}
}
