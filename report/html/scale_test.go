package html

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/property"
)

// anyScale is an axis of any place and size.
func anyScale(t *rapid.T, log bool) scale {
	low := math.Exp(rapid.Float64Range(-20, 20).Draw(t, "low"))
	return scale{low, low * (1 + math.Exp(rapid.Float64Range(-8, 20).Draw(t, "span"))), log}
}

// TestTicksLieOnTheAxis holds that ticks are on the axis, ascending, and as many as one can read.
func TestTicksLieOnTheAxis(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s := anyScale(t, rapid.Bool().Draw(t, "log"))
		parts := rapid.IntRange(3, 9).Draw(t, "parts")
		ticks := s.linearTicks(parts)
		if s.log {
			ticks = s.logTicks(parts)
		}
		if len(ticks) == 0 || len(ticks) > parts+2 {
			t.Fatalf("%d ticks on %+v, want 1 to %d: %g", len(ticks), s, parts+2, ticks)
		}
		for i, v := range ticks {
			if at := s.at(v); at < -1e-6 || at > 1+1e-6 {
				t.Errorf("the tick %g is off the axis %+v", v, s)
			}
			if i > 0 && v <= ticks[i-1] {
				t.Errorf("ticks do not ascend: %g", ticks)
			}
		}
	})
}

// TestChangeTicksHoldNoChange holds that an axis of ratios always says where no change is.
func TestChangeTicksHoldNoChange(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s := scale{math.Exp(-rapid.Float64Range(0.001, 6).Draw(t, "below")), math.Exp(rapid.Float64Range(0.001, 6).Draw(t, "above")), true}
		if !slices.ContainsFunc(s.changeTicks(7), func(v float64) bool { return math.Abs(v-1) < 1e-9 }) {
			t.Errorf("no tick at 1 on %+v: %g", s, s.changeTicks(7))
		}
	})
}

// TestRoomIsWider holds that room never makes an axis of no length, nor one on which its values do not lie.
func TestRoomIsWider(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		log := rapid.Bool().Draw(t, "log")
		v := rapid.Float64Range(0, 1e12).Draw(t, "value")
		if log {
			v = math.Exp(rapid.Float64Range(-20, 20).Draw(t, "log value"))
		}
		s, ok := spanOf([]float64{v, math.NaN(), math.Inf(1)}, log)
		wide := s.room(0.05)
		if !ok || !(wide.low < wide.high) || !(wide.at(v) > 0 && wide.at(v) < 1) || log && wide.low <= 0 {
			t.Errorf("the axis of %g alone is %+v, there %g", v, wide, wide.at(v))
		}
	})
}

// TestSpread holds that labels keep their order and their distance, stay in the picture if they fit there, and are not moved where
// they do not touch.
func TestSpread(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		places := rapid.SliceOfN(rapid.Float64Range(0, 300), 1, 30).Draw(t, "places")
		slices.Sort(places)
		wanted := slices.Clone(places)
		apart := true
		for i := range wanted {
			apart = apart && wanted[i] >= labelHeight/2.0 && wanted[i] <= 300-labelHeight/2.0 && (i == 0 || wanted[i]-wanted[i-1] >= labelHeight)
		}
		spread(places, labelHeight, 300)
		for i := range places {
			if i > 0 && places[i]-places[i-1] < labelHeight-1e-9 {
				t.Errorf("labels %d and %d are %g apart: %g", i-1, i, places[i]-places[i-1], places)
			}
			if fits := float64(len(places))*labelHeight <= 300; fits && (places[i] < 0 || places[i] > 300) {
				t.Errorf("label %d is out of the picture: %g", i, places)
			}
			if apart && math.Abs(places[i]-wanted[i]) > 1e-9 {
				t.Errorf("label %d was moved from %g to %g though nothing is in its way", i, wanted[i], places[i])
			}
		}
	})
}

func TestLabels(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{changeLabel(1), "0"},
		{changeLabel(1.2), "+20%"},
		{changeLabel(0.995), "-0.5%"},
		{changeLabel(2), "+100%"},
		{changeLabel(5), "×5"},
		{changeLabel(0.1), "×0.1"},
		{valueLabel("ns", 10_000), "10 µs"},
		{valueLabel("ns", 1_500), "1.5 µs"},
		{valueLabel("bit/s", 2e9), "2 Gbit/s"},
		{percentageLabel(0), "min"},
		{percentageLabel(1), "p90"},
		{percentageLabel(4), "p99.99"},
		{number(-0.04), "0"},
		{percent(0.5), "50%"},
		{percent(1.0 / 3), "33.3%"},
		{seconds(2.5), "2.5s"},
		{seconds(600), "10m0s"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
