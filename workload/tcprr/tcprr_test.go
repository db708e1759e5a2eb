package tcprr_test

import (
	"os"
	"testing"

	"netdelta/workload/tcprr"
	"netdelta/workload/workloadtest"
)

func TestMain(m *testing.M) { os.Exit(workloadtest.Main(m, tcprr.Workload())) }

func TestConformance(t *testing.T) { workloadtest.Run(t, tcprr.Workload()) }
