package udpstream_test

import (
	"os"
	"testing"

	"netdelta/agent"
	"netdelta/workload"
	"netdelta/workload/udpstream"
	"netdelta/workload/workloadtest"
)

// The test binary is its own agent, and a server for the conformance suite.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become([]workload.Workload{udpstream.Workload()})
	}
	os.Exit(workloadtest.Main(m, udpstream.Workload()))
}

func TestConformance(t *testing.T) { workloadtest.Run(t, udpstream.Workload()) }

func TestSearchWhenQuiet(t *testing.T) { workloadtest.Search(t, udpstream.Workload()) }
