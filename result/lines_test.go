package result

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A sealed line is decoded as encoding/json decodes it, and nearly all of them by the decoder that is made for them.
func TestSealedLinesAreDecodedAsOthers(t *testing.T) {
	long := Trial{
		Cell: `a name with "bursts":{`, Role: RoleCell, Build: 3, Started: time.Unix(5, 7).UTC(), Finished: time.Unix(6, 0).UTC(),
		Bursts: Bursts{
			Round: []int{0, 1, 2}, Start: []int64{1, -2, 999_999_999_999_999_999}, Duration: []int64{4, 5, 6}, P50: []float64{1.5, 1e-7, 12345678901.25},
			P90: []float64{math.SmallestNonzeroFloat64, -math.MaxFloat64, 0.1 + 0.2}, Lost: []int64{0, 0, 1}, Disturbed: []string{"", "stall", "a ] and a ,"},
		},
		Disk: &Disk{P50: time.Millisecond}, Histogram: "aGk=", Failed: "said \"no\"",
	}
	escaped, farther, searched := long, long, long
	escaped.Bursts.Disturbed = []string{"", "", "<&>\u2028"}
	farther.Bursts.Start = []int64{1, 2, math.MinInt64}
	searched.Bursts.AtLeast = []bool{true, false, true}
	random := Trial{Cell: "random", Role: RoleBaseline}
	for i := range 10_000 {
		x := math.Float64frombits(rand.Uint64())
		switch {
		case i%3 == 0:
			x = math.Round(rand.Float64()*1e9) / math.Pow10(i%10)
		case math.IsNaN(x) || math.IsInf(x, 0):
			x = 0
		}
		b := &random.Bursts
		b.Round, b.Start, b.Duration, b.P50 = append(b.Round, i), append(b.Start, rand.Int64()>>(i%64)), append(b.Duration, 1), append(b.P50, x)
		b.Start[i] %= 1e18
	}
	d := lineDecoder{columns: columnNames()}
	for name, c := range map[string]struct {
		trial Trial
		other bool // it is left to the other decoder
	}{
		"long": {trial: long}, "random": {trial: random},
		"short": {trial: Trial{Cell: "host", Role: RoleBaseline, Bursts: Bursts{Round: []int{0}, Start: []int64{9}, Duration: []int64{8}, Throughput: []float64{3}}}},
		"none":  {trial: Trial{Cell: "none", Role: RoleCell, Failed: "no link"}},
		"text":  {escaped, true}, "far": {farther, true}, "search": {searched, true},
	} {
		line, err := encodeTrial(c.trial)
		if err != nil {
			t.Fatal(err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		var want, have, sealed Trial
		err = json.Unmarshal(line, &want)
		if err == nil {
			err = d.read(&have, line, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s is decoded otherwise (-encoding/json +sealed):\n%s", name, diff)
		}
		if done := d.readSealed(&sealed, line); done == c.other {
			t.Errorf("%s: the decoder that is made for it has read it: %v", name, done)
		}
	}
}
