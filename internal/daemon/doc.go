// Package daemon runs programs of others for as long as they are needed: servers, with their configuration and data in
// memory, and the tools that prepare or load them. Whatever it starts ends with this process, however that ends, and nothing
// of it stays: no process, no file, no mount.
package daemon
