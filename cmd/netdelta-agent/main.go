// Command netdelta-agent is what netdelta sends to where it measures: into pods, to nodes, into guests.
package main

import (
	"os"

	"netdelta/agent/program"
	"netdelta/workload/catalogue"
)

func main() { os.Exit(program.Main(os.Args[1:], catalogue.Workloads())) }
