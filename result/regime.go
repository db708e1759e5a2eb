package result

import "strings"

// How requests and responses keep the processors that their ends are pinned to. A record has it as Params.CPU and Params.RequestRate.
const (
	RegimeSaturated = "saturated" // both ends on one, a request after the other
	RegimeWaking    = "waking"    // on two, each of which wakes for every message
	RegimePaced     = "paced"     // on two, requests at the rate that was asked for: an open loop
)

// regimeKey is the key of the one parameter that is no field: it stands for the processors and the rate of requests.
const regimeKey = "regime"

// HasRegimes says whether a workload is of requests and responses, which have regimes.
func HasRegimes(workload string) bool { return strings.HasSuffix(workload, "rr") }

// Regime is the regime of requests and responses; "" where their ends are not pinned. One that is paced may have both ends on one
// processor: CPU says so.
func (p Params) Regime() string {
	switch {
	case p.CPU != "same" && p.CPU != "two":
		return ""
	case p.RequestRate > 0:
		return RegimePaced
	case p.CPU == "same":
		return RegimeSaturated
	}
	return RegimeWaking
}

// inRegime are the parameters in a regime, "" for none. Only one that is paced has a rate of requests.
func (p Params) inRegime(regime string) Params {
	if regime != RegimePaced {
		p.RequestRate = 0
	}
	switch regime {
	case RegimeSaturated:
		p.CPU = "same"
	case RegimeWaking, RegimePaced:
		p.CPU = "two"
	default:
		p.CPU = ""
	}
	return p
}
