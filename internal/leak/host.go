package leak

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Snapshot is the state of the host that no test may change: its links, addresses, routes, rules, firewall and network
// settings, and the files below /etc. Each part has a name and a value.
type Snapshot map[string]string

// Host takes a snapshot of the network namespace of this program and of /etc.
func Host() (Snapshot, error) {
	s := Snapshot{}
	for _, part := range []struct {
		name string
		take func(Snapshot) error
	}{
		{"links and addresses", takeLinks}, {"routes and rules", takeRoutes}, {"firewall", takeFirewall},
		{"settings", takeSettings}, {"files below /etc", takeFiles}, {"mounts", takeMounts},
	} {
		if err := part.take(s); err != nil {
			return nil, fmt.Errorf("take a snapshot of the host's %s: %w", part.name, err)
		}
	}
	return s, nil
}

// Diff lists what differs between two snapshots, a line each, nothing if they are equal.
func Diff(before, after Snapshot) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		now, ok := after[name]
		switch {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s: was %q, is gone", name, before[name]))
		case now != before[name]:
			lines = append(lines, fmt.Sprintf("%s: was %q, is %q", name, before[name], now))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			lines = append(lines, fmt.Sprintf("%s: is new: %q", name, after[name]))
		}
	}
	return lines
}

// again repeats a netlink dump that the kernel interrupted because its contents changed meanwhile.
func again[T any](list func() (T, error)) (T, error) {
	for range 8 {
		v, err := list()
		if !errors.Is(err, netlink.ErrDumpInterrupted) && !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
	return list()
}

func takeLinks(s Snapshot) error {
	links, err := again(netlink.LinkList)
	if err != nil {
		return err
	}
	for _, l := range links {
		a := l.Attrs()
		s["link "+a.Name] = fmt.Sprint(a.Index, l.Type(), a.MTU, a.Flags, a.HardwareAddr, a.MasterIndex, a.OperState, a.TxQLen, a.Alias)
		addresses, err := again(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_ALL) })
		if err != nil {
			return err
		}
		for _, a := range addresses {
			s[fmt.Sprintf("address %s on %s", a.IPNet, l.Attrs().Name)] = fmt.Sprint(a.Scope, a.Broadcast, a.Peer)
		}
	}
	return nil
}

func takeRoutes(s Snapshot) error {
	every := &netlink.Route{Table: unix.RT_TABLE_UNSPEC}
	routes, err := again(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_ALL, every, netlink.RT_FILTER_TABLE)
	})
	if err != nil {
		return err
	}
	for _, r := range routes {
		s[fmt.Sprintf("route %v table %d metric %d device %d type %d via %v", r.Dst, r.Table, r.Priority, r.LinkIndex, r.Type, r.Gw)] = r.String()
	}
	rules, err := again(func() ([]netlink.Rule, error) { return netlink.RuleList(netlink.FAMILY_ALL) })
	if err != nil {
		return err
	}
	for i, r := range rules {
		s[fmt.Sprintf("rule %d", i)] = r.String()
	}
	return nil
}

func takeFirewall(s Snapshot) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	tables, err := c.ListTables()
	if err != nil {
		// A kernel without nftables has no rules, and a user without rights can't have changed them.
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		return err
	}
	for _, t := range tables {
		s[fmt.Sprintf("table %d %s", t.Family, t.Name)] = ""
	}
	chains, err := c.ListChains()
	if err != nil {
		return err
	}
	for _, chain := range chains {
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return err
		}
		text, err := json.Marshal(rules)
		if err != nil {
			return err
		}
		s[fmt.Sprintf("chain %d %s %s", chain.Table.Family, chain.Table.Name, chain.Name)] = string(text)
	}
	return nil
}

// takeSettings reads all that can be read below /proc/sys/net, but for what counts.
func takeSettings(s Snapshot) error {
	return filepath.WalkDir("/proc/sys/net", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, "_count") {
			return err
		}
		// Some can only be written, some only be read once they are set.
		if value, err := os.ReadFile(path); err == nil {
			s["setting "+path] = strings.TrimSpace(string(value))
		}
		return nil
	})
}

func takeFiles(s Snapshot) error {
	return filepath.WalkDir("/etc", func(path string, e fs.DirEntry, err error) error {
		// What this user may not see, or what goes away while it is looked at, is left out of both snapshots.
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		value := fmt.Sprint(info.Mode(), info.Size())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			value = "-> " + target
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			value = fmt.Sprintf("%s %x", value, sha256.Sum256(content))
		case info.IsDir():
			value = info.Mode().String()
		}
		s["file "+path] = value
		return nil
	})
}

// takeMounts lists namespaces that are held by a mount, in whatever directory.
func takeMounts(s Snapshot) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.Contains(line, " - nsfs ") {
			s["mount "+fields[4]] = fields[3]
		}
	}
	return nil
}
