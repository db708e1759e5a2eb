package words

import "testing"

// Shares are printed to two digits, never as a power of ten.
func TestRoughly(t *testing.T) {
	for share, want := range map[float64]string{0.00123: "0.12%", 0.0456: "4.6%", 0.77: "77%", 0.996: "100%", 1.13: "113%"} {
		if got := roughly(share); got != want {
			t.Errorf("%g is printed as %s, want %s", share, got, want)
		}
	}
}
