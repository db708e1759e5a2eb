package study

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// ConditionLevels are the levels of what networks are measured under. The fields are those of result.Conditions.
type ConditionLevels struct {
	LinkRate    []unit.BitsPerSecond
	LinkDelay   []time.Duration
	LinkLoss    []float64
	LinkCount   []int
	BondMode    []string
	BondHash    []string
	TSO         []result.Switch
	GSO         []result.Switch
	GRO         []result.Switch
	LRO         []result.Switch
	RPS         []result.Switch
	Policy      []string
	PolicyRules []int
	PolicyPods  []int
	Service     []string
	Services    []int
	From        []string
	Encryption  []string
	QoS         []string
}

// Bounds of conditions.
const (
	maxLinkDelay = 10 * time.Second
	maxLinkLoss  = 0.5 // beyond it hardly a connection comes about
	maxLinkCount = 16
	maxRules     = 10_000
	maxPods      = 200 // more than a node takes by default, and each is a real one
)

// conditions are the parameters that are conditions.
func conditions() []parameter {
	return append(linkConditions(), podConditions()...)
}

// linkConditions concern the links between the nodes, and the offloads of all devices.
func linkConditions() []parameter {
	return []parameter{
		field[unit.BitsPerSecond]{
			key: "link.rate", parse: parseRate, text: rateText, bound: bounded(minRate, maxRate, bitRate),
			of: func(l *Levels) *[]unit.BitsPerSecond { return &l.Conditions.LinkRate },
			in: func(p *result.Params) *unit.BitsPerSecond { return &p.Conditions.LinkRate },
		},
		field[time.Duration]{
			key: "link.delay", parse: parseDuration, text: FormatDuration, bound: (*checker).linkDelay,
			of: func(l *Levels) *[]time.Duration { return &l.Conditions.LinkDelay },
			in: func(p *result.Params) *time.Duration { return &p.Conditions.LinkDelay },
		},
		field[float64]{
			key: "link.loss", parse: parseFraction, text: floatText, bound: bounded(0, maxLinkLoss, floatText),
			of: func(l *Levels) *[]float64 { return &l.Conditions.LinkLoss },
			in: func(p *result.Params) *float64 { return &p.Conditions.LinkLoss },
		},
		field[int]{
			key: "link.count", parse: parseCount, text: strconv.Itoa, idle: 1, bound: bounded(1, maxLinkCount, decimal),
			of: func(l *Levels) *[]int { return &l.Conditions.LinkCount },
			in: func(p *result.Params) *int { return &p.Conditions.LinkCount },
		},
		words("bond.mode", func(l *Levels) *[]string { return &l.Conditions.BondMode },
			func(p *result.Params) *string { return &p.Conditions.BondMode },
			"802.3ad", "balance-xor", "balance-rr", "active-backup", "broadcast", "balance-tlb", "balance-alb"),
		words("bond.xmit_hash_policy", func(l *Levels) *[]string { return &l.Conditions.BondHash },
			func(p *result.Params) *string { return &p.Conditions.BondHash },
			"layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"),
		onOff("offload.tso", func(l *Levels) *[]result.Switch { return &l.Conditions.TSO },
			func(p *result.Params) *result.Switch { return &p.Conditions.TSO }),
		onOff("offload.gso", func(l *Levels) *[]result.Switch { return &l.Conditions.GSO },
			func(p *result.Params) *result.Switch { return &p.Conditions.GSO }),
		onOff("offload.gro", func(l *Levels) *[]result.Switch { return &l.Conditions.GRO },
			func(p *result.Params) *result.Switch { return &p.Conditions.GRO }),
		onOff("offload.lro", func(l *Levels) *[]result.Switch { return &l.Conditions.LRO },
			func(p *result.Params) *result.Switch { return &p.Conditions.LRO }),
	}
}

// podConditions concern what pods and nodes do with packets beside moving them.
func podConditions() []parameter {
	return []parameter{
		onOff("rps", func(l *Levels) *[]result.Switch { return &l.Conditions.RPS },
			func(p *result.Params) *result.Switch { return &p.Conditions.RPS }),
		otherwise(words("policy", func(l *Levels) *[]string { return &l.Conditions.Policy },
			func(p *result.Params) *string { return &p.Conditions.Policy },
			result.None, result.PolicyIPTables, result.PolicyNFTables, result.PolicyEBPF, result.PolicyKubernetes), result.None),
		field[int]{
			key: "policy.rules", parse: parseCount, text: strconv.Itoa, bound: bounded(1, maxRules, decimal),
			of: func(l *Levels) *[]int { return &l.Conditions.PolicyRules },
			in: func(p *result.Params) *int { return &p.Conditions.PolicyRules },
		},
		field[int]{
			key: "policy.pods", parse: parseCount, text: strconv.Itoa, bound: bounded(1, maxPods, decimal),
			of: func(l *Levels) *[]int { return &l.Conditions.PolicyPods },
			in: func(p *result.Params) *int { return &p.Conditions.PolicyPods },
		},
		otherwise(words("service", func(l *Levels) *[]string { return &l.Conditions.Service },
			func(p *result.Params) *string { return &p.Conditions.Service },
			result.ServicePod, result.ServiceIPTables, result.ServiceNFTables, result.ServiceIPVS, result.ServiceEBPF), result.ServicePod),
		field[int]{
			key: "service.count", parse: parseCount, text: strconv.Itoa, bound: bounded(1, maxRules, decimal),
			of: func(l *Levels) *[]int { return &l.Conditions.Services },
			in: func(p *result.Params) *int { return &p.Conditions.Services },
		},
		otherwise(words("from", func(l *Levels) *[]string { return &l.Conditions.From },
			func(p *result.Params) *string { return &p.Conditions.From }, result.FromPod, result.FromNode), result.FromPod),
		otherwise(words("encryption", func(l *Levels) *[]string { return &l.Conditions.Encryption },
			func(p *result.Params) *string { return &p.Conditions.Encryption }, result.None, result.WireGuard, result.IPsec), result.None),
		words("qos", func(l *Levels) *[]string { return &l.Conditions.QoS },
			func(p *result.Params) *string { return &p.Conditions.QoS }, result.Guaranteed, result.BestEffort),
	}
}

// onOff is a parameter that is a switch.
func onOff(key string, of func(*Levels) *[]result.Switch, in func(*result.Params) *result.Switch) field[result.Switch] {
	f := words(key, of, in, result.On, result.Off)
	f.parse, f.quotes = parseSwitch, false
	return f
}

func parseSwitch(s string) (result.Switch, error) {
	if v := result.Switch(s); v == result.On || v == result.Off {
		return v, nil
	}
	return "", fmt.Errorf("%q is neither on nor off", clip(s))
}

// tripsInBurst is how many round trips of a delayed link a burst must have room for, or it would measure its own end.
const tripsInBurst = 4

func (c *checker) linkDelay(path string, v time.Duration) {
	burst, least := c.study.Design.Burst, 2*tripsInBurst*v
	if inRange(c, path, v, 0, maxLinkDelay, FormatDuration) && burst < least && !c.bad("design.burst") {
		c.fail(path, fmt.Sprintf("a burst of %s is too short for a round trip that takes %s longer", FormatDuration(burst), FormatDuration(2*v)),
			"set design: {burst: "+FormatDuration(least)+"}")
	}
}

// companion is a condition that says more of another one, and nothing without it.
type companion struct {
	key, of string
	// kept says whether plain conditions still have it.
	kept func(result.Conditions) bool
	mend string
}

func companions() []companion {
	return []companion{
		{
			"bond.mode", "link.count", func(c result.Conditions) bool { return c.BondMode != "" },
			"a bond takes two links: link.count: [2]",
		},
		{
			"bond.xmit_hash_policy", "link.count", func(c result.Conditions) bool { return c.BondHash != "" },
			"it takes two links (link.count: [2]) and a bond.mode that hashes: 802.3ad, balance-xor or balance-tlb",
		},
		{
			"policy.rules", "policy", func(c result.Conditions) bool { return c.PolicyRules != 0 },
			"say whose rules: policy: [none, nftables]",
		},
		{
			"policy.pods", "policy", func(c result.Conditions) bool { return c.PolicyPods != 0 },
			"policies of a cluster let pods in: policy: [none, kubernetes]",
		},
		{
			"service.count", "service", func(c result.Conditions) bool { return c.Services != 0 },
			"say who resolves them: service: [pod, iptables]",
		},
	}
}

// idle reports levels that change nothing, as the number of rules where there is no policy. all are the levels of a workload
// together with the factors; where finds the path of a key's levels.
func (c *checker) idle(all Levels, where func(key string) string) {
	if len(all.Target) > 0 && len(all.File) > 0 {
		// The workload can't tell: what it is asked about has its default size where none was given.
		c.fail(where("file"), "file changes nothing: with a target, answers are as long as they are", "leave file out, or target, to measure a server of netdelta's own")
	}
	var combined []result.Params
	for _, one := range companions() {
		p, _ := parameterOf(one.key)
		if len(p.levels(&all)) == 0 {
			continue
		}
		if combined == nil {
			combined = all.Combinations()
		}
		if !slices.ContainsFunc(combined, func(p result.Params) bool { return one.kept(p.Conditions) }) {
			c.fail(where(one.key), fmt.Sprintf("%s changes nothing: there is no %s that it could be of", one.key, one.of), one.mend)
		}
	}
}
