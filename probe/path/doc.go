// Package path proves that a load went the way that its network says: over the devices that the plan names, wrapped as the
// plan says and in no other way, whole, and in packets as large as promised. It reads the counters of all devices and of the
// IP stacks before and after a short load, and looks at a sample of the packets (AF_PACKET). No eBPF is used: programs in the
// path would change what is measured, and the counters see every packet in any case.
//
// Judge is a pure function over what was observed; a Prober makes the observation on a live testbed. An Audit holds the
// counters of a whole phase against what the cells moved in it.
package path
