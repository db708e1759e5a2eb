// Package path proves that a load went the way that its network says: over the devices that the plan names, wrapped as the
// plan says and in no other way, whole, and in packets as large as promised. It reads the counters of all devices and of the
// IP stacks before and after a short load, and looks at a sample of the packets (AF_PACKET). No eBPF is used: programs in the
// path would change what is measured, and the counters see every packet in any case.
//
// There are two provers, for two questions. A PlannedProver has a plan: Judge holds each device's counters against what the plan
// has pass it in each direction, and the devices off the way have to stay silent. An UnplannedProver is for machines that
// somebody else has joined, such as a cluster's: which devices packets cross there is not known beforehand and others use them too, so
// JudgeUnplanned follows the load's own packets and says which way they went. They share the load, the decoder of packets, the counts of
// a sample and the changes of counters. Both judges are pure functions over what was observed. An Audit holds the counters of a whole
// phase against what the cells moved in it.
package path
