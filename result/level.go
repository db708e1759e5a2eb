package result

import (
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
)

// Level is one level of a factor, as it is written and named: Factor "policy" and Value "nftables:1000".
type Level struct {
	Factor, Value string
}

// String is the level as a claim writes it: "policy=nftables:1000".
func (l Level) String() string { return l.Factor + "=" + l.Value }

// Levels are the conditions that are set, in a fixed order. Settings that mean nothing alone are one level together: the
// links of a bond with its mode and hash, the kind of policy with its rules, the kind of service with its number. Two plain
// conditions are the same if and only if their levels are.
func (c Conditions) Levels() []Level {
	c = c.Plain()
	var all []Level
	add := func(factor, value string) {
		if value != "" {
			all = append(all, Level{factor, value})
		}
	}
	add("link.rate", exactRate(c.LinkRate))
	add("link.delay", exactDuration(c.LinkDelay))
	if c.LinkLoss != 0 {
		add("link.loss", exactShare(c.LinkLoss))
	}
	add("link.nodes", c.NodeLinks)
	if c.BondMode != "" {
		bond := strconv.Itoa(max(c.LinkCount, 1)) + "x" + c.BondMode
		if c.BondHash != "" {
			bond += "," + c.BondHash
		}
		add("bond", bond)
	}
	add("offload.tso", string(c.TSO))
	add("offload.gso", string(c.GSO))
	add("offload.gro", string(c.GRO))
	add("offload.lro", string(c.LRO))
	add("rps", string(c.RPS))
	policy := counted(c.Policy, c.PolicyRules)
	if c.PolicyPods > 0 {
		policy += "," + strconv.Itoa(c.PolicyPods) + "pods"
	}
	add("policy", policy)
	add("service", counted(c.Service, c.Services))
	add("from", c.From)
	add("encryption", c.Encryption)
	add("qos", c.QoS)
	return all
}

// counted is a kind with how many there are of it, "" for no kind.
func counted(kind string, n int) string {
	if kind == "" {
		return ""
	}
	return kind + ":" + strconv.Itoa(n)
}

// exactRate prints a rate without rounding, "" for none.
func exactRate(r unit.BitsPerSecond) string {
	if r == 0 {
		return ""
	}
	if text, err := r.MarshalText(); err == nil {
		return string(text)
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64)
}

// exactDuration prints a duration as study files have it ("10ms", "1m"), "" for none.
func exactDuration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	s := strings.Replace(d.String(), "µ", "u", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// exactShare prints a share in percent without rounding: the point of its shortest decimal form is moved.
func exactShare(share float64) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(share, 'f', -1, 64), ".")
	fraction += "00"
	percent := strings.TrimLeft(whole+fraction[:2], "0")
	if rest := strings.TrimRight(fraction[2:], "0"); rest != "" {
		percent += "." + rest
	}
	if percent == "" || percent[0] == '.' {
		percent = "0" + percent
	}
	return percent + "%"
}
