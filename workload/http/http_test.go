package http_test

import (
	"os"
	"testing"

	"netdelta/workload/http"
	"netdelta/workload/workloadtest"
)

func TestMain(m *testing.M) { os.Exit(workloadtest.Main(m, http.Workload())) }

func TestConformance(t *testing.T) { workloadtest.Run(t, http.Workload()) }
