// Package joined makes one testbed of nodes that are machines of their own, joined by their network cards.
package joined
