package kube

import (
	"context"
	"fmt"
	"os"
	"testing"

	"netdelta/testbed/kube/inside"
	"netdelta/testbed/kube/nodeagent"
	"netdelta/testbed/testbedtest"
)

// TestMain makes the test's binary what is started in pods, too.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == inside.Verb:
		end(inside.Do(os.Args[2:]))
	case len(os.Args) > 1 && os.Args[1] == PluginVerb:
		end(RunPlugin(context.Background(), os.Args[2:], os.Stdin, os.Stdout))
	case len(os.Args) > 1 && os.Args[1] == nodeagent.Verb:
		end(nodeagent.Serve(os.Stdin, os.Stdout))
	}
	os.Exit(testbedtest.Main(m, nil))
}

// end ends what was started in a pod.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
