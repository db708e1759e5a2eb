package measure

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netdelta/result"
	"netdelta/testbed"
)

// What is broken is one finding for all networks and builds that it was met in; other errors are none.
func TestBrokenNetworksAreFound(t *testing.T) {
	o := newObserved()
	says := "packets above 1450 bytes vanish from w1 to w2"
	for _, b := range []testbed.BrokenError{
		{Says: says, Network: "pod", Tried: "first", Fix: "raise it"},
		{Says: says, Network: "pod", Tried: "again", Fix: "raise it"},
		{Says: says, Network: "clusterip", Fix: "raise it"},
		{Says: "nothing passes", Network: "nodeport", Fix: "open it"},
	} {
		o.Fail(fmt.Errorf("pod x on node w2: %w", &b))
	}
	o.Fail(errors.New("it was evicted"))
	before := result.Finding{Topic: "clock"}
	want := []result.Finding{
		before,
		{Topic: result.TopicBroken, Says: says + ", over network pod, clusterip", Fix: "raise it"},
		{Topic: result.TopicBroken, Says: "nothing passes, over network nodeport", Fix: "open it"},
	}
	if diff := cmp.Diff(want, o.Environment(result.Environment{Findings: []result.Finding{before}}).Findings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
