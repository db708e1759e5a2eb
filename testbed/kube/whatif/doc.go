// Package whatif makes nodes of testbeds on the nodes of a Kubernetes cluster, by a privileged pod on each: the lab's networks over the
// nodes' real cards, beside the network that joins the cluster's pods, which may stand in the same run. Nothing of the nodes' own network
// or of the cluster's is changed.
package whatif
