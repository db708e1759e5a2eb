package tcpstream_test

import (
	"os"
	"testing"

	"netdelta/workload/tcpstream"
	"netdelta/workload/workloadtest"
)

func TestMain(m *testing.M) { os.Exit(workloadtest.Main(m, tcpstream.Workload())) }

func TestConformance(t *testing.T) { workloadtest.Run(t, tcpstream.Workload()) }
