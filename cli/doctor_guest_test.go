package cli

import "testing"

// TestWith: the doctor's finding on a network combines this machine's and the guest's, with a fix only where there is one.
func TestWith(t *testing.T) {
	const fix = "load it with modprobe ipip"
	for _, c := range []struct{ here, guest, want finding }{
		{finding{OK: true, Says: "runs in the lab"}, finding{OK: true, Says: "runs in the lab"}, finding{OK: true, Says: "runs in the lab, and in the guest"}},
		{finding{Says: "needs ipip", Fix: fix}, finding{OK: true}, finding{Says: "needs ipip; runs in the guest", Fix: "run it with --testbed vm"}},
		{finding{OK: true, Says: "runs in the lab"}, finding{Says: "needs TUN"}, finding{OK: true, Says: "runs in the lab, not in the guest: needs TUN"}},
		{finding{Says: "needs ipip", Fix: fix}, finding{Says: "needs a card"}, finding{Says: "needs ipip; the guest: needs a card", Fix: fix}},
	} {
		if got := c.here.with(c.guest); got != c.want {
			t.Errorf("%+v with %+v: got %+v, want %+v", c.here, c.guest, got, c.want)
		}
	}
}
