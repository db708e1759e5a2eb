// Package whatif makes nodes of testbeds on the nodes of a Kubernetes cluster, by a privileged pod on each: the lab's networks over the
// nodes' real cards, measured with the network that joins the cluster's pods. Nothing of the nodes' own network
// or of the cluster's is changed.
package whatif
