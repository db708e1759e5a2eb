// Package kube measures a Kubernetes cluster: a testbed whose nodes are nodes of the cluster that a kubeconfig names, and whose pods
// the cluster schedules. Nothing but the measured traffic crosses the pod network: agents are spoken to through the API server's
// exec streams, and no port is opened for them.
package kube
