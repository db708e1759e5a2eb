// Package docker is a testbed of the networks that a container engine on this machine has: Docker, or Podman, which takes the same
// commands. The engine makes a container for each pod and joins it to its network; what is measured runs in the container's network
// namespace and is confined by nothing else, as in a lab, so that the two can be held against each other.
package docker
