// Package cpu tells what a burst cost in processor time: at the client, at the server, and in the kernel for no thread in particular.
//
// The client's measuring thread reads its own clock at both ends of a burst, and says so in engine.Burst.CPU. The server
// runs on in another process: its clock (clock_getcpuclockid(3)) is read around the burst. Both have nanoseconds. An agent
// does nothing else while its server is measured, so its whole process is the server's loop (to 0.3%, as a test shows); the
// clock of a single thread can't be read from another process. What else runs on the same processor, and takes it away from a
// loop for a while, makes latencies longer but is in neither figure: a thread's clock stands still while the thread does not
// run.
//
// A server on another machine tells its own time (Meter.Told): its caller asks before and after a round, or a burst, and records it.
//
// Where programs of others serve, the clocks of all processes that the server's agent has started are read with it, and what the
// kernel has summed up of their children that have ended, in ticks of 10 ms. A client whose program makes the load says itself
// what it used; one that does not has none on record, and insight then has no figure of it.
//
// The kernel does the work of the network as soft interrupts, most of them in the name of the thread that sends. Whether that
// thread's clock counts them depends on the kernel, which package softirq tries:
//
//   - "threads": it does. The work in no thread's name is what the kernel hands to its threads ksoftirqd, whose clocks are read too.
//   - "apart": soft interrupts stop the clock of the thread that they interrupt (CONFIG_IRQ_TIME_ACCOUNTING). Then they are
//     taken from /proc/stat, where ksoftirqd is among them. It counts in ticks of 10 ms: a single burst has 0 or one tick, and
//     only the sum over a trial, in which the ticks fall to either side equally often, says something.
//
// In neither case is it known for which connection the kernel worked. It counts on the processors that the burst was pinned
// to, and what other programs have the kernel do there is in it; so is, in the client's and the server's figures, a soft
// interrupt of another's packet that happened to come in their time. Both are noise to a difference between two networks that
// are measured in turn. What a soft interrupt does on an idle processor, in the "threads" kernels, is in no figure.
package cpu
