// Cilium's agent, operator, plugin and tool, apart from the cluster of ../../kubernetes: they need other versions of its libraries.
module netdelta/tools/cni/cilium

go 1.26.0

require github.com/cilium/cilium v1.20.2

replace (
	// One constant of this module is used, and the version asked for is not to be had everywhere.
	sigs.k8s.io/mcs-api/controllers => ./mcs-controllers

	// A release in place of the unreleased version that Cilium asks for: no cluster here speaks BGP by it.
	github.com/osrg/gobgp/v4 => github.com/osrg/gobgp/v4 v4.5.0
)
