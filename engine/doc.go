// Package engine holds the measured loops behind the network workloads: request-response, connect-request-response and
// streams, over TCP and UDP. A loop runs on a thread of its own (package native) and is idle, blocked in the kernel, between
// bursts. Everything that a loop touches lies in one arena; functions that run inside a loop are marked nosplit and norace,
// and the files that hold them are named loop_*.go. docs/adr/0003-measured-loop.md says why.
//
// A process needs no settings for its loops to run undisturbed; few processors for goroutines (GOMAXPROCS) and no garbage
// collection within bursts keep the rest of it out of the way. A loop opens sockets of its own only for ConnectRR and
// HTTP: such a client must run in a process that is inside its network namespace as a whole.
//
// A Sweep visits several clients on one thread, a few transactions each, in a new random order every time: what the machine does to
// all of them cancels out (docs/adr/0044-sweeps.md).
package engine
