package udprr_test

import (
	"os"
	"testing"

	"netdelta/workload/udprr"
	"netdelta/workload/workloadtest"
)

func TestMain(m *testing.M) { os.Exit(workloadtest.Main(m, udprr.Workload())) }

func TestConformance(t *testing.T) { workloadtest.Run(t, udprr.Workload()) }
