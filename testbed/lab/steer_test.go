package lab

import (
	"slices"
	"testing"
)

func TestListOfCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0-1,4,6-7": {0, 1, 4, 6, 7}, "": nil, "3-1": nil, "a": nil, "0-": nil} {
		got, err := listOfCPUs(list)
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(got, want) {
			t.Errorf("%q: got %v (%v), want %v", list, got, err, want)
		}
	}
}

func TestCPUMask(t *testing.T) {
	for want, cpus := range map[string][]int{
		"00000003": {0, 1}, "80000000": {31}, "00000001,00000000": {32}, "00000001,80000000,00000001": {0, 63, 64},
	} {
		if got := cpuMask(cpus); got != want {
			t.Errorf("%v: %s, want %s", cpus, got, want)
		}
	}
}
