package lab

import "testing"

func TestCPUMask(t *testing.T) {
	for want, cpus := range map[string][]int{
		"00000003": {0, 1}, "80000000": {31}, "00000001,00000000": {32}, "00000001,80000000,00000001": {0, 63, 64},
	} {
		if got := cpuMask(cpus); got != want {
			t.Errorf("%v: %s, want %s", cpus, got, want)
		}
	}
}
