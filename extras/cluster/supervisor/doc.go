// Package supervisor brings a whole Kubernetes cluster up on this machine, in namespaces, and ends it.
//
// One process, the supervisor, is process 1 of a namespace of process numbers and holds everything else: the network namespaces
// have no names, mounts are not seen outside, and when it ends, however it does, the kernel ends all processes of the
// cluster with it. What outlives it are control groups, which the next up or down removes, and files below its folder.
package supervisor
