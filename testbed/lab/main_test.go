package lab_test

import (
	"os"
	"testing"

	"netdelta/testbed/testbedtest"
)

func TestMain(m *testing.M) { os.Exit(testbedtest.Main(m, nil)) }
