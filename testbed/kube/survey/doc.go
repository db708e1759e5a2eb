// Package survey finds out what a Kubernetes cluster is made of and what a run needs of it: versions, nodes and their clocks, the
// network plugin and its mode, how services are reached, and what the user may do. Look collects facts, with the fewest rights
// possible: what can't be read is named, with the right that it takes. Judge says what the facts mean, without requests. What the
// cluster says is passed on as it is: reports clean it before they print it.
package survey
