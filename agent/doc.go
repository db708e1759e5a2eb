// Package agent runs workloads inside pods on behalf of a controller.
//
// An agent is this same binary, started in a pod and spoken to over its standard input and output, one JSON document a
// line. No port is opened and no control traffic crosses the network that is measured; every kind of testbed needs only a
// way to start a process in a pod. An agent ends by itself when its standard input is closed.
package agent
