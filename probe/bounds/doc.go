// Package bounds tells what kept a trial from doing more: a link, the processors, the disk, or nothing but that it waits for
// answers.
//
// A resource that is in use for a share u of the time leaves room for at most 1/u as much work, whatever else is made faster.
// From a share of 0.9 on (Full) that is a ninth more, less than most differences that one asks about: the resource is then what
// bounds, and what a network costs is what it takes of this resource. Below it no single resource does. Where two are full, the
// one named first here is the answer, since its share can be trusted more:
//
//   - link: what the devices of the underlay that are held to a rate sent during the bursts, by their counters, against the
//     rate; the fullest of them counts, in its one direction. Without a rate there is no share.
//   - disk: how many operations there were, against how many the server's storage does without a network, which the server has
//     measured before its clients came.
//   - cpu: how long the processors on which the workload may run were not idle, by whatever programs: processors that others
//     use are no less gone. The kernel counts this in ticks of 10 ms, so that it holds for bursts of 100 ms and above. For
//     shorter ones it is the time for which the threads of both ends and the kernel on their behalf ran, or were ready to.
//     Next to it stands the busiest thread of the two ends, against one processor: many idle processors don't help one thread.
//   - latency: none of them. What the workload does hangs on how long it waits for answers, and so on what a network adds to a
//     round trip.
//
// All is read outside of the bursts. Reading the counters of every device takes a while, so that it is done for the first few
// bursts of a trial and for the longer ones.
package bounds
