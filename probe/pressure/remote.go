package pressure

import (
	"fmt"
	"time"

	host "netdelta/internal/machine"
	"netdelta/probe/procstat"
)

// SampleOf is a sample of another machine, of all its processors, from what was read there. Two samples can only be held against
// each other when both are of the same machine.
func SampleOf(c host.Counters) (Sample, error) {
	s := Sample{at: time.Unix(0, 0).Add(c.At)}
	var err error
	if s.times, err = procstat.Parse([]byte(c.Stat), nil); err != nil {
		return Sample{}, err
	}
	if c.Pressure != "" {
		err = s.addPressure([]byte(c.Pressure))
	}
	if c.Schedule != "" && err == nil {
		err = s.addSchedule([]byte(c.Schedule), nil)
	}
	if err != nil {
		return Sample{}, err
	}
	if s.limits, err = parseThrottling([]byte(c.Limit)); err != nil {
		return Sample{}, fmt.Errorf("the control group's limit: %w", err)
	}
	return s, nil
}

// Worst is what happened on several machines in the same time: each figure from the machine where it was highest, and of the
// samples of soft interrupts the fewest.
func Worst(loads []Load) Load {
	var worst Load
	for i, l := range loads {
		if i == 0 {
			worst = l
			continue
		}
		worst = Load{
			Waiting: max(worst.Waiting, l.Waiting), Steal: max(worst.Steal, l.Steal), Softirq: max(worst.Softirq, l.Softirq),
			Samples: min(worst.Samples, l.Samples), Queue: max(worst.Queue, l.Queue), Ready: max(worst.Ready, l.Ready),
			Throttled: max(worst.Throttled, l.Throttled), Throttles: max(worst.Throttles, l.Throttles),
		}
	}
	return worst
}
