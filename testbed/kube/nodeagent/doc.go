// Package nodeagent looks at a cluster's nodes and pods from within: at the devices of a network namespace, what they and the IP
// stack have counted, and at a sample of the packets of a trial, of no other. It is netdelta itself, started in a pod and spoken
// to over its standard input and output (package rpc), and it ends when its input does.
//
// On a node it needs a pod in the node's own namespace with the capabilities of SecurityContext. In an ordinary pod it needs no
// rights, and sees what concerns the pod, but no packets.
package nodeagent
