// Package udptun is the process that carries packets between a TUN device and a UDP socket, as the userspace tunnels of
// container networks do: each packet is the payload of one datagram, sent to the node that has its destination. Many packets
// that are there at once go through the kernel in one call (sendmmsg, recvmmsg); one alone does not wait for others.
package udptun

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Verb is the last argument of a program that is to become a tunnel.
const Verb = "udp-tunnel"

// The files that a tunnel is started with, besides the standard ones. It ends when its standard input does.
const (
	tunFile    = 3 // a TUN device without packet information
	socketFile = 4 // a UDP socket, bound
)

// Ready is what a tunnel writes to its standard output once it carries packets.
const Ready = "ready\n"

// Config says what a tunnel carries.
type Config struct {
	// MTU is the size of the largest packet, in bytes.
	MTU   int    `json:"mtu"`
	Peers []Peer `json:"peers"`
}

// Peer is a node to which packets are carried. Where the ranges of several hold an address, the first is taken.
type Peer struct {
	Pods netip.Prefix   `json:"pods"`
	Node netip.AddrPort `json:"node"`
}

// flagName is the only flag of a tunnel. It stands before the verb, so that a program that can't become a tunnel refuses to
// start in place of doing something else.
const flagName = "--tunnel="

// Arguments start this program as a tunnel.
func (c Config) Arguments() ([]string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write down the tunnel's peers: %w", err)
	}
	return []string{flagName + string(text), Verb}, nil
}

// Asked says whether this process was started to be a tunnel. Programs and tests that open labs call it first thing.
func Asked() bool {
	return len(os.Args) == 3 && os.Args[2] == Verb && strings.HasPrefix(os.Args[1], flagName)
}

// parse reads what Arguments wrote.
func parse(text string) (Config, error) {
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, fmt.Errorf("read what the tunnel is to carry: %w", err)
	}
	switch {
	case c.MTU < 1 || c.MTU > maxPacket:
		return c, fmt.Errorf("a tunnel for packets of %d bytes: need 1 to %d", c.MTU, maxPacket)
	case slices.ContainsFunc(c.Peers, func(p Peer) bool { return !p.Pods.IsValid() || !p.Node.IsValid() }):
		return c, errors.New("a peer of the tunnel has no addresses")
	}
	return c, nil
}

// Become makes this process the tunnel that Arguments described, and returns its exit status when its standard input ends.
func Become() int {
	err := serve(strings.TrimPrefix(os.Args[1], flagName))
	if err != nil {
		fmt.Fprintln(os.Stderr, "netdelta udp-tunnel:", err)
		return 1
	}
	return 0
}
