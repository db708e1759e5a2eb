package block_test

import (
	"testing"

	"netdelta/workload/block"
	"netdelta/workload/workloadtest"
)

func TestConformance(t *testing.T) { workloadtest.Run(t, block.Workload()) }
