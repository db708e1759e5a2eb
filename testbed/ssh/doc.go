// Package ssh opens testbeds whose nodes are the user's own servers. The system's own ssh carries the conversation with each: it knows the
// user's configuration, keys, agents, jump hosts and known hosts. Nothing is installed: the small program is sent to a private folder,
// and is gone at the end.
package ssh
