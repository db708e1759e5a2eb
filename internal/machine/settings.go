package machine

import (
	"fmt"
	"strconv"
	"strings"

	"netdelta/result"
)

// idleMost is how long a processor may take to wake without being a matter: less than a round trip of a fast network.
const idleMost = 10 // µs

// Settings are what the doctor finds of a machine's clock, idle states and governor. Where Fix is "", all is well.
func Settings(e result.Environment) (all []result.Finding) {
	if e.Clock != "" {
		all = append(all, clock(e.Clock))
	}
	if e.CPU.Idle != "" {
		all = append(all, idle(e.CPU.Idle))
	}
	if g := e.CPU.Governor; g != "" && g != "performance" {
		all = append(all, result.Finding{
			Topic: "governor", Says: g + ": the processors' speed follows the load", Fix: "cpupower frequency-set -g performance, for the time of the run",
		})
	}
	return all
}

// clock is about a clock source.
func clock(source string) result.Finding {
	f := result.Finding{Topic: "clock", Says: source}
	if source != "tsc" && source != "arch_sys_counter" {
		f.Says += ": reading it costs more than a counter in the processor"
		f.Fix = "differences stay right; if the processor's own counter is stable, boot with clocksource=tsc"
	}
	return f
}

// idle is about the deepest idle state, as Describe names it.
func idle(state string) result.Finding {
	name, wakes, _ := strings.Cut(state, ", ")
	f := result.Finding{Topic: "idle states", Says: fmt.Sprintf("down to %s, from which a processor takes %s to wake", name, wakes)}
	if us, err := strconv.Atoi(strings.TrimSuffix(wakes, " µs")); err == nil && us > idleMost {
		f.Fix = fmt.Sprintf("cpupower idle-set -D %d, for the time of the run", idleMost)
	}
	return f
}
