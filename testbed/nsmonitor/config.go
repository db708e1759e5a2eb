package nsmonitor

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"netdelta/result"
)

// Setting is one thing that is configured in a namespace: of a device, or of the namespace where Device is "".
type Setting struct{ Device, Name string }

// Config is how a namespace is configured: devices with their features, queueing disciplines and programs, firewall rules, routes and
// sysctls, each as text. What only counts, ages or is learned is not in it, so that two readings differ only where somebody
// changed something.
type Config map[Setting]string

const (
	features   = "features"
	sysctlRoot = "/proc/sys/"
)

// ReadConfig reads the configuration of the calling thread's namespace, with these sysctls. The firewall rules are only counted where
// they have changed since the last reading, which may be nil.
func ReadConfig(sysctls []string, last Config) (Config, error) {
	c := Config{}
	socket, err := openNetlink(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer func() { _ = socket.close() }()
	_, err = List(func() ([]Setting, error) {
		clear(c)
		return nil, c.readRouting(socket)
	})
	if err != nil {
		return nil, fmt.Errorf("read the configuration of devices and routes: %w", err)
	}
	if err := c.readFirewall(last); err != nil {
		return nil, fmt.Errorf("read the firewall rules: %w", err)
	}
	return c, c.readSysctls(sysctls)
}

// readRouting reads all that rtnetlink and ethtool know.
func (c Config) readRouting(socket *netlinkSocket) error {
	names := map[int]string{}
	if err := socket.dump(unix.RTM_GETLINK, linkQuestion(), func(body []byte) { c.addLink(body, names) }); err != nil {
		return err
	}
	if err := c.readFeatures(slices.Collect(maps.Values(names))); err != nil {
		return err
	}
	filtered := map[int]bool{}
	if err := socket.dump(unix.RTM_GETQDISC, new(nl.TcMsg).Serialize(), func(body []byte) { c.addQdisc(body, names, filtered) }); err != nil {
		return err
	}
	for index := range filtered {
		if err := c.readFilters(socket, index, names[index]); err != nil {
			return err
		}
	}
	c.readAttached(names)
	if err := socket.dump(unix.RTM_GETROUTE, make([]byte, unix.SizeofRtMsg), func(body []byte) { c.addRoute(body, names) }); err != nil {
		return err
	}
	return socket.dump(unix.RTM_GETRULE, make([]byte, unix.SizeofRtMsg), c.addRule)
}

// readUntold is the configuration with sysctls and attached programs read again: the kernel sends no notices of their changes.
func (c Config) readUntold(sysctls []string) (Config, error) {
	now := Config{}
	names := map[int]string{}
	for k, v := range c {
		if k.Name == numberSetting {
			number, err := strconv.Atoi(v)
			if err != nil {
				return nil, fmt.Errorf("the number of %s: %w", k.Device, err)
			}
			names[number] = k.Device
		}
		if !slices.Contains(hooks(), k.Name) && !slices.Contains(sysctls, k.Name) {
			now[k] = v
		}
	}
	now.readAttached(names)
	return now, now.readSysctls(sysctls)
}

// readFeatures reads which features of devices are active, as a row of ones and zeros.
func (c Config) readFeatures(devices []string) error {
	e, err := OpenEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	for _, d := range devices {
		active, err := e.active(d)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the features of %s: %w", d, err)
		}
		c[Setting{d, features}] = active
	}
	return nil
}

// readSysctls reads settings by their names; those that this kernel does not have are left out.
func (c Config) readSysctls(names []string) error {
	buffer := make([]byte, os.Getpagesize())
	for _, name := range names {
		path := name
		if !strings.Contains(name, "/") {
			path = strings.ReplaceAll(name, ".", "/")
		}
		n, err := readInto(sysctlRoot+path, buffer)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the setting %s: %w", name, err)
		}
		c[Setting{"", name}] = string(bytes.Join(bytes.Fields(buffer[:n]), []byte(" ")))
	}
	return nil
}

// readInto reads a small file with three system calls: there are many of them.
func readInto(path string, buffer []byte) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	n, err := unix.Read(fd, buffer)
	return n, errors.Join(err, unix.Close(fd))
}

// absent is the text of a setting that is not there.
const absent = "none"

// Changes are the settings that differ, in a fixed order; featureNames are the kernel's names for the places in a row of features.
func (c Config) Changes(now Config, featureNames []string) []result.ConfigChange {
	keys := slices.Collect(maps.Keys(c))
	for k := range now {
		if _, both := c[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b Setting) int { return strings.Compare(a.Device+"\x00"+a.Name, b.Device+"\x00"+b.Name) })
	gone := map[string]bool{} // devices of which only that is said
	var all []result.ConfigChange
	for _, k := range keys {
		was, is := c[k], now[k]
		if was == is || gone[k.Device] {
			continue
		}
		if k.Name == linkState && (was == "" || is == "") {
			gone[k.Device] = true
		}
		if k.Name == features && was != "" && is != "" {
			all = append(all, featureChanges(k.Device, was, is, featureNames)...)
			continue
		}
		all = append(all, result.ConfigChange{Device: k.Device, Setting: k.Name, Was: orAbsent(was), Is: orAbsent(is)})
	}
	return all
}

func orAbsent(value string) string {
	return cmp.Or(value, absent)
}

// featureChanges are the features that differ between two rows.
func featureChanges(device, was, is string, names []string) []result.ConfigChange {
	word := map[byte]string{'0': "off", '1': "on"}
	var all []result.ConfigChange
	for i := range min(len(was), len(is)) {
		if was[i] == is[i] {
			continue
		}
		name := fmt.Sprintf("feature %d", i)
		if i < len(names) {
			name = names[i]
		}
		all = append(all, result.ConfigChange{Device: device, Setting: name, Was: word[was[i]], Is: word[is[i]]})
	}
	return all
}

// addRoute takes over a route that was not made by the kernel itself for an address.
func (c Config) addRoute(body []byte, names map[int]string) {
	if len(body) < unix.SizeofRtMsg {
		return
	}
	m, order := nl.DeserializeRtMsg(body), binary.NativeEndian
	table := uint32(m.Table)
	byItself := []byte{unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_MULTICAST, unix.RTN_ANYCAST}
	if slices.Contains(byItself, m.Type) || m.Flags&unix.RTM_F_CLONED != 0 {
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
	name := routeName(to, m.Dst_len, m.Family, table, metric)
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
	return withNetfilter(func(socket *netlinkSocket) error { return c.countRules(socket, last) })
}

// withNetfilter calls f with a socket of netfilter, and does nothing where the kernel has none.
func withNetfilter(f func(*netlinkSocket) error) error {
	socket, err := openNetlink(unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = socket.close() }()
	return f(socket)
}

// countRules is readFirewall over a socket of netfilter.
func (c Config) countRules(socket *netlinkSocket, last Config) error {
	generation := uint32(0)
	err := socket.ask(getGeneration, 0, make([]byte, sizeofNfgen), func(body []byte) {
		for kind, value := range attributes(body[min(sizeofNfgen, len(body)):]) {
			if kind == unix.NFTA_GEN_ID && len(value) == 4 {
				generation = binary.BigEndian.Uint32(value)
			}
		}
	})
	if err != nil || generation == 0 {
		return nil //nolint:nilerr // a kernel without nftables
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
