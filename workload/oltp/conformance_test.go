package oltp_test

import (
	"testing"

	"netdelta/workload/oltp"
	"netdelta/workload/workloadtest"
)

func TestConformance(t *testing.T) { workloadtest.Run(t, oltp.Workload()) }
