// Package network is the catalogue of container networks: how pods are attached and reach each other. A network is
// planned as pure data (links, addresses, routes, rules) over a topology; a testbed carries the plan out.
package network
