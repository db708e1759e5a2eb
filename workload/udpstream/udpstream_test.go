package udpstream_test

import (
	"os"
	"testing"

	"netdelta/agent"
	"netdelta/internal/require"
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

func TestSearchWhenQuiet(t *testing.T) {
	require.Quiet(t)
	workloadtest.Search(t, udpstream.Workload())
}
