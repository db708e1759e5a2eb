package measure

import (
	"testing"

	"netdelta/result"
)

// What is usual in one state of a cluster says nothing of another one.
func TestEachStateHasItsOwnUsualLoad(t *testing.T) {
	r := &Rounds{usual: map[string]*calibration{}}
	in := func(state string) *calibration {
		return r.calibrationFor([]*Session{{Cell: result.Cell{State: state}}, {Cell: result.Cell{}}})
	}
	first := in("vxlan")
	if first == in("routes") || first == in("") || first != in("vxlan") {
		t.Error("states share what is usual, or one has it twice")
	}
}
