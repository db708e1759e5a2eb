package nsmonitor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Standing names what stands in the calling thread's namespace and belongs to no pod, sorted: devices with their MTU, queueing
// disciplines, filters and programs that are attached to them, routes, routing rules, chains of the firewall by the first words of their
// names, and these settings. Bridges, whose MTU follows from their pods', and what comes and goes with pods and services are not in it, so
// that two readings differ only where somebody has changed the machine's network.
func Standing(sysctls []string) ([]string, error) {
	config, err := ReadConfig(sysctls, nil)
	if err != nil {
		return nil, err
	}
	pods, err := podDevices()
	if err != nil {
		return nil, fmt.Errorf("tell the devices of pods: %w", err)
	}
	found := map[string]bool{}
	for s, value := range config {
		_, device, _ := strings.Cut(value, "dev ") // of a route
		device, _, _ = strings.Cut(device, " ")
		if pods[cmp.Or(s.Device, strings.TrimSuffix(device, ","))] {
			continue
		}
		found[standingName(config, s, value)] = true
	}
	if err := chains(func(name string) { found[name] = true }); err != nil {
		return nil, fmt.Errorf("read the chains of the firewall: %w", err)
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found)), nil
}

// standingName names a setting of a namespace, "" for what is not worth a name of its own. A program's number is another one each time
// that it is loaded.
func standingName(config Config, s Setting, value string) string {
	switch {
	case s == firewall():
		return ""
	case s.Device == "" && strings.HasPrefix(s.Name, "routing rule"):
		return s.Name
	case s.Device == "" && strings.HasPrefix(s.Name, "route"):
		return strings.TrimSpace(s.Name + " " + value)
	case s.Device == "":
		return s.Name + " = " + value
	case s.Name == linkState:
		return "device " + s.Device + " with MTU " + config[Setting{s.Device, "mtu"}]
	case strings.HasPrefix(s.Name, "qdisc"):
		if kind, _, _ := strings.Cut(value, " "); kind != "noqueue" {
			return "queueing discipline " + kind + " on " + s.Device
		}
	case strings.HasPrefix(s.Name, "filters"), strings.Contains(s.Name, "program"):
		return s.Name + " on " + s.Device
	}
	return ""
}

const getChains = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETCHAIN

// chains calls each with the names of the chains of nftables, which iptables' are, too, where it is nftables underneath.
func chains(each func(string)) error {
	err := withNetfilter(func(socket *netlinkSocket) error {
		_, err := List(func() ([]string, error) {
			return nil, socket.dump(getChains, make([]byte, sizeofNfgen), func(body []byte) { each(chainOf(body)) })
		})
		return err
	})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil // a kernel without nftables
	}
	return err
}

// chainOf names what the chain of a message is one of.
func chainOf(message []byte) string {
	table, name, hooked := "", "", false
	for kind, value := range attributes(message[min(sizeofNfgen, len(message)):]) {
		switch kind {
		case unix.NFTA_CHAIN_TABLE:
			table = strings.TrimRight(string(value), "\x00")
		case unix.NFTA_CHAIN_NAME:
			name = strings.TrimRight(string(value), "\x00")
		case unix.NFTA_CHAIN_HOOK:
			hooked = true
		}
	}
	return chainFamily(table, name, hooked)
}

// chainFamily names what a chain is one of: chains of all services, or of all pods, begin with the same words. In tables that are not
// iptables' the table is named alone. Chains that iptables makes by itself have no name here.
func chainFamily(table, name string, hooked bool) string {
	switch {
	case !slices.Contains([]string{"filter", "nat", "mangle", "raw", "security"}, table):
		return "table " + table
	case hooked:
		return ""
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return c == '-' || c == '_' })
	family := name
	if len(words) > 1 {
		family = words[0] + name[len(words[0]):len(words[0])+1] + words[1]
		if strings.ContainsAny(words[1], "0123456789") {
			family = words[0]
		}
	}
	return "chains " + family + " of table " + table
}
