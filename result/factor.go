package result

import (
	"slices"
	"strconv"
)

// Factors are what effects are taken of, in the order in which they are shown: every condition, and the parameters that
// leave the load as it is. Message, connections and rates are none of them: another load is another question.
func Factors() []string {
	return []string{
		"link.rate", "link.delay", "link.loss", "bond", "offload.tso", "offload.gso", "offload.gro", "offload.lro", "rps", "policy", "service",
		"from", "encryption", "qos", "mtu", "family", "cpu", "busy_poll", "congestion_control", "nagle", "engine",
		"storage_class",
	}
}

// Level is the level of one of Factors. One that is not set is named by what it then is: "none" for a policy.
func (p Params) Level(factor string) string {
	switch factor {
	case "mtu":
		if p.MTU != 0 {
			return strconv.FormatInt(int64(p.MTU), 10)
		}
	case "family":
		if p.Family != "" {
			return string(p.Family)
		}
	case "cpu":
		if p.CPU != "" {
			return p.CPU
		}
	case "busy_poll":
		if p.BusyPoll != 0 {
			return exactDuration(p.BusyPoll)
		}
	case "congestion_control":
		if p.CongestionControl != "" {
			return p.CongestionControl
		}
	case "nagle":
		return strconv.FormatBool(p.Nagle)
	case "engine":
		if p.Engine != "" {
			return p.Engine
		}
	case "storage_class":
		if p.StorageClass != "" {
			return p.StorageClass
		}
	default:
		all := p.Conditions.Levels()
		if i := slices.IndexFunc(all, func(l Level) bool { return l.Factor == factor }); i >= 0 {
			return all[i].Value
		}
	}
	return unset(factor)
}

// unset is what a factor that has no level is.
func unset(factor string) string {
	switch factor {
	case "link.delay", "busy_poll":
		return "0s"
	case "link.loss":
		return "0%"
	case "bond":
		return "1 link"
	case "policy", "encryption", "qos":
		return None
	case "service":
		return ServicePod
	case "from":
		return FromPod
	case "family":
		return string(IPv4)
	case "cpu":
		return "same"
	case "congestion_control":
		return "cubic"
	case "engine":
		return "netdelta"
	}
	return "default"
}

// Without are the parameters with one of Factors left open: two that differ in it alone are then the same.
func (p Params) Without(factor string) Params {
	var none Params
	switch factor {
	case "mtu":
		p.MTU = none.MTU
	case "family":
		p.Family = none.Family
	case "cpu":
		p.CPU = none.CPU
	case "busy_poll":
		p.BusyPoll = none.BusyPoll
	case "congestion_control":
		p.CongestionControl = none.CongestionControl
	case "nagle":
		p.Nagle = none.Nagle
	case "engine":
		p.Engine = none.Engine
	case "storage_class":
		p.StorageClass = none.StorageClass
	default:
		p.Conditions = p.Conditions.without(factor)
	}
	return p
}

// without are the conditions with one of them left open.
func (c Conditions) without(factor string) Conditions {
	switch factor {
	case "link.rate":
		c.LinkRate = 0
	case "link.delay":
		c.LinkDelay = 0
	case "link.loss":
		c.LinkLoss = 0
	case "bond":
		c.LinkCount, c.BondMode, c.BondHash = 0, "", ""
	case "offload.tso":
		c.TSO = ""
	case "offload.gso":
		c.GSO = ""
	case "offload.gro":
		c.GRO = ""
	case "offload.lro":
		c.LRO = ""
	case "rps":
		c.RPS = ""
	case "policy":
		c.Policy, c.PolicyRules, c.PolicyPods = "", 0, 0
	case "service":
		c.Service, c.Services = "", 0
	case "from":
		c.From = ""
	case "encryption":
		c.Encryption = ""
	case "qos":
		c.QoS = ""
	}
	return c.Plain()
}

// Load are the parameters with all of Factors left open: what the workload itself is asked to do.
func (p Params) Load() Params {
	for _, f := range Factors() {
		p = p.Without(f)
	}
	return p
}
