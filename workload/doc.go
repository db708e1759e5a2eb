// Package workload is the catalogue of what runs across a network, with the engines that load it and measure it.
package workload
