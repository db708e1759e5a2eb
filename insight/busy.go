package insight

import (
	"math"
	"slices"

	"netdelta/result"
)

// otherLoads is the share of the processors' time that other programs took, in each build: the mean of its trials. Builds without trials
// that were measured, and runs that count instructions, have none.
func otherLoads(all []batch) []float64 {
	var loads []float64
	for _, b := range all {
		sum, n := 0.0, 0
		for _, s := range b {
			if s.failed == "" && s.exact == nil {
				sum, n = sum+s.otherLoad, n+1
			}
		}
		if n > 0 {
			loads = append(loads, sum/float64(n))
		}
	}
	return loads
}

// busyShare is the share of the processors' time that other programs took throughout a run, 0 where that is less than
// result.BusyShare. Both the first build and all together must show it: what is still being removed of a build can look like other
// programs to the next one, and a load that comes after the first build is marked burst by burst.
func busyShare(all []batch) float64 {
	loads := otherLoads(all)
	if len(loads) == 0 {
		return 0
	}
	sum := 0.0
	for _, l := range loads {
		sum += l
	}
	if busy := min(loads[0], sum/float64(len(loads))); busy >= result.BusyShare {
		return busy
	}
	return 0
}

// busyFloor is the largest delta that other programs may have caused that take such a share of the processors' time, on the scale of the
// metric's deltas: what runs for the rest of the time takes 1/(1-share) as long. It is infinite where they take all.
func busyFloor(share float64, m metric) float64 {
	if m.linear {
		return share
	}
	return -math.Log1p(-min(share, 1))
}

// busyChecks says of a run that other programs kept the processors busy.
func busyChecks(all []batch) []Check {
	share := busyShare(all)
	if share == 0 {
		return nil
	}
	loads, busy := otherLoads(all), 0
	for _, l := range loads {
		if l >= result.BusyShare {
			busy++
		}
	}
	return []Check{{Trial: "all trials", Name: CheckBusy, Share: share, N: int64(busy), Of: int64(len(loads))}}
}

// Busy says whether a run's record says that other programs kept the processors busy throughout.
func Busy(run result.Run) bool {
	return slices.ContainsFunc(run.Checks, func(c result.Check) bool { return c.Check == CheckBusy })
}
