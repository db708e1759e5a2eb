package nsmonitor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// addRoute takes over a route that was not made by the kernel itself for an address.
func (c Config) addRoute(body []byte, names map[int]string) {
	if len(body) < unix.SizeofRtMsg {
		return
	}
	const lengthAt, tableAt, typeAt, flagsAt = 1, 4, 7, 8
	order := binary.NativeEndian
	table := uint32(body[tableAt])
	byItself := []byte{unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_MULTICAST, unix.RTN_ANYCAST}
	if slices.Contains(byItself, body[typeAt]) || order.Uint32(body[flagsAt:])&unix.RTM_F_CLONED != 0 {
		return
	}
	to := netip.Addr{}
	device, text, metric := "", "", uint32(0)
	var rest []byte
	for kind, value := range attributes(body[unix.SizeofRtMsg:]) {
		address, _ := netip.AddrFromSlice(value)
		switch kind {
		case unix.RTA_DST:
			to = address
		case unix.RTA_GATEWAY:
			text += "via " + address.String() + " "
		case unix.RTA_PREFSRC:
			text += "from " + address.String() + " "
		case unix.RTA_OIF:
			device = names[int(order.Uint32(value))]
		case unix.RTA_PRIORITY:
			metric = order.Uint32(value)
		case unix.RTA_TABLE:
			table = order.Uint32(value)
		case unix.RTA_METRICS, unix.RTA_MULTIPATH, unix.RTA_ENCAP, unix.RTA_VIA, unix.RTA_PREF:
			rest = append(rest, value...)
		}
	}
	if to.IsLinkLocalUnicast() || to.IsMulticast() {
		return
	}
	name := routeName(to, body[lengthAt], body[0], table, metric)
	if device != "" {
		text += "dev " + device
	}
	if len(rest) > 0 {
		text += " " + sum(rest)
	}
	if old := c[Setting{"", name}]; old != "" { // several routes to one place
		text = old + ", " + text
	}
	c[Setting{"", name}] = strings.TrimSpace(text)
}

// routeName names a route by where it leads.
func routeName(to netip.Addr, length, family byte, table, metric uint32) string {
	name := "route default"
	if to.IsValid() {
		name = fmt.Sprintf("route %s/%d", to, length)
	} else if family == unix.AF_INET6 {
		name = "route default (IPv6)"
	}
	if table != unix.RT_TABLE_MAIN {
		name += fmt.Sprintf(" table %d", table)
	}
	if metric != 0 {
		name += fmt.Sprintf(" metric %d", metric)
	}
	return name
}

// addRule takes over a rule of policy routing.
func (c Config) addRule(body []byte) {
	if len(body) < unix.SizeofRtMsg {
		return
	}
	priority := uint32(0)
	rest := append([]byte(nil), body[:unix.SizeofRtMsg]...)
	for kind, value := range attributes(body[unix.SizeofRtMsg:]) {
		if kind == unix.FRA_PRIORITY && len(value) == 4 {
			priority = binary.NativeEndian.Uint32(value)
		}
		rest = append(rest, value...)
	}
	name := fmt.Sprintf("routing rule %d", priority)
	if body[0] == unix.AF_INET6 {
		name += " (IPv6)"
	}
	c[Setting{"", name}] += sum(rest)
}

// Of linux/netfilter/nf_tables.h: messages are numbered within their part of netfilter.
const (
	getRules      = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE
	getGeneration = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN
	sizeofNfgen   = 4
)

// firewall is the setting of all tables of nftables, iptables' among them where that is nftables underneath.
func firewall() Setting { return Setting{"", "firewall"} }

// readFirewall reads which generation the tables of nftables are of, which every change makes anew, and how many rules they have.
func (c Config) readFirewall(last Config) error {
	socket, err := openNetlink(unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = socket.close() }()
	generation := uint32(0)
	err = socket.ask(getGeneration, 0, make([]byte, sizeofNfgen), func(body []byte) {
		for kind, value := range attributes(body[min(sizeofNfgen, len(body)):]) {
			if kind == unix.NFTA_GEN_ID && len(value) == 4 {
				generation = binary.BigEndian.Uint32(value)
			}
		}
	})
	if err != nil || generation == 0 {
		return nil // a kernel without nftables
	}
	end := fmt.Sprintf("generation %d", generation)
	if old := last[firewall()]; strings.HasSuffix(old, end) {
		c[firewall()] = old
		return nil
	}
	rules := 0
	if err := socket.dump(getRules, make([]byte, sizeofNfgen), func([]byte) { rules++ }); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	c[firewall()] = fmt.Sprintf("%d rules, %s", rules, end)
	return nil
}
