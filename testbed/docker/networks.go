package docker

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/network"
)

// Kind is the name that studies and --testbed have for the testbed.
const Kind = "docker"

// Prefix begins the names of an engine's networks: "docker:NAME" is the engine's network NAME.
const Prefix = "docker:"

// Networks that every engine has.
const (
	// Host is the engine's own network namespace.
	Host = Prefix + "host"
	// Bridge is the network that containers are joined to unless they name another.
	Bridge = Prefix + "bridge"
	// Published reaches a container of Bridge from the host, at a published port of the host's address: the firewall rewrites it.
	Published = Prefix + "published"
	// Proxied is Published at the loopback address, which Docker's proxy in user space serves. Podman has none.
	Proxied = Prefix + "published-proxy"
)

// none is the engine's network without anything in it.
const none = Prefix + "none"

// Networks are those that every engine has, in the order in which they are listed. They have no plan.
func Networks() []network.Network {
	return []network.Network{
		{Name: Host, Summary: "containers in the host's own network namespace, over loopback", UsedBy: []string{"docker run --network host"}, Reach: network.ByNode, OwnPods: true},
		{Name: Bridge, Summary: "the engine's default bridge, from container to container", UsedBy: []string{"docker run"}, OwnPods: true},
		{Name: Published, Summary: "from the host to a published port at the host's address, by the firewall's rewriting", UsedBy: []string{"docker run --publish"}, Reach: network.ByNode, OwnPods: true},
		{Name: Proxied, Summary: "from the host to a published port at localhost, by the engine's proxy in user space where it has one", UsedBy: []string{"docker run --publish, userland-proxy"}, Reach: network.ByNode, OwnPods: true},
	}
}

// own is a network of the user's, of which the engine says its driver.
func own(f found) network.Network {
	return network.Network{
		Name: Prefix + f.name, Summary: fmt.Sprintf("network %s of the engine, driver %s", f.name, f.driver),
		UsedBy: []string{"docker run --network " + f.name}, OwnPods: true,
	}
}

// catalogue are the engine's networks: those that every engine has, and the user's own.
func catalogue(listed []found) []network.Network {
	all := Networks()
	for _, f := range listed {
		if !slices.Contains([]string{"host", "none", "bridge", "podman"}, f.name) { // the last is Podman's name of its bridge
			all = append(all, own(f))
		}
	}
	return all
}

// engineName is what the engine calls the network that a container is joined to.
func engineName(name string) string {
	switch name {
	case Published, Proxied:
		name = Bridge
	}
	return strings.TrimPrefix(name, Prefix)
}
