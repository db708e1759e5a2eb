// Package leak finds what tests leave behind: changes to the host, and namespaces, file descriptors, threads and processes
// of the test itself.
package leak
