package udpstream_test

import (
	"os"
	"testing"

	"netdelta/workload/udpstream"
	"netdelta/workload/workloadtest"
)

func TestMain(m *testing.M) { os.Exit(workloadtest.Main(m, udpstream.Workload())) }

func TestConformance(t *testing.T) { workloadtest.Run(t, udpstream.Workload()) }
