package tcpcrr_test

import (
	"os"
	"testing"

	"netdelta/workload/tcpcrr"
	"netdelta/workload/workloadtest"
)

func TestMain(m *testing.M) { os.Exit(workloadtest.Main(m, tcpcrr.Workload())) }

func TestConformance(t *testing.T) { workloadtest.Run(t, tcpcrr.Workload()) }
