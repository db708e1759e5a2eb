// Package testbed defines what an experiment runs on: nodes with pods, joined by a network. A Spec is pure data; a Provider
// opens it as a live Testbed, whose Close is idempotent and leaves nothing behind.
package testbed
