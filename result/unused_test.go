package result

import (
	"math"
	"strings"
	"testing"

	"netdelta/unit"
)

// A level of a workload's own parameter outside of what is declared is refused by name, with the bounds; those at the bounds are not.
func TestUnusedHoldsDeclaredBounds(t *testing.T) {
	own := Declare(
		Parameter{Key: "topics", Kind: KindCount, Low: 1, High: 64}, Parameter{Key: "record", Kind: KindSize, Low: 512, High: float64(unit.MiB)},
		Parameter{Key: "acks", Kind: KindShare, Low: 0.5, High: 1}, Parameter{Key: "free", Kind: KindCount},
	)
	for want, given := range map[string]Own{
		"topics 65 is out of range: 1 to 64":        OwnOf("topics", 65),
		"topics -1 is out of range: 1 to 64":        OwnOf("topics", -1),
		"record 511B is out of range: 512B to 1MiB": OwnOf("record", unit.Bytes(511)),
		"acks 0.25 is out of range: 0.5 to 1":       OwnOf("acks", 0.25),
		"acks NaN is out of range: 0.5 to 1":        OwnOf("acks", math.NaN()),
	} {
		if err := Unused(Params{Own: given}, own); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, fits := range []Own{OwnOf("topics", 64, "record", unit.MiB, "acks", 1.0, "free", 1_000_000), OwnOf("topics", 1.0, "record", 512.0, "acks", 0.5)} {
		if err := Unused(Params{Own: fits}, own); err != nil {
			t.Error(err)
		}
	}
}
