package kube

import (
	"fmt"
	"os"
	"testing"

	"netdelta/testbed/kube/inside"
	"netdelta/testbed/testbedtest"
)

// TestMain makes the test's binary what is started in pods, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == inside.Verb {
		if err := inside.Do(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testbedtest.Main(m, nil))
}
