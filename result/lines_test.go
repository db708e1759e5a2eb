package result

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A sealed line is decoded as encoding/json decodes it, also after a longer one, whose columns must not show through.
func TestSealedLinesAreDecodedAsOthers(t *testing.T) {
	long := Trial{
		Cell: "vxlan", Role: RoleCell, Build: 3, Started: time.Unix(5, 7).UTC(), Finished: time.Unix(6, 0).UTC(),
		Bursts: Bursts{
			Round: []int{0, 1, 2}, Start: []int64{1, 2, 3}, Duration: []int64{4, 5, 6}, P50: []float64{1.5, 1e-7, 12345678901.25},
			Disturbed: []string{"", "stall", "<&>\u2028"},
		},
		Disk: &Disk{P50: time.Millisecond}, Histogram: "aGk=", Failed: "said \"no\"",
	}
	short := Trial{
		Cell: "host", Role: RoleBaseline, Started: time.Unix(7, 0).UTC(), Finished: time.Unix(8, 0).UTC(),
		Bursts: Bursts{Round: []int{0}, Start: []int64{9}, Duration: []int64{8}, Throughput: []float64{3}},
	}
	var r rooms
	for _, trial := range []Trial{long, short, {Cell: "none", Role: RoleCell, Failed: "no link"}, long} {
		line, err := encodeTrial(trial)
		if err != nil {
			t.Fatal(err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		var want, have Trial
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		if err := have.readSealed(line, &r); err != nil {
			t.Fatalf("decode the trial of %s: %v", trial.Cell, err)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("the trial of %s is decoded otherwise (-encoding/json +sealed):\n%s", trial.Cell, diff)
		}
	}
}
