// Package engine holds the measured loops behind the network workloads: request-response, connect-request-response and
// streams, over TCP and UDP. A loop runs on a thread of its own (package native) and is idle, blocked in the kernel, between
// bursts. Everything that a loop touches lies in one arena; functions that run inside a loop are marked go:nosplit and
// go:norace, and each file that holds such functions says so by its name: loop_*.go.
package engine
