package nsmonitor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// ConfigWatch notices what changes in the configuration of a namespace. The kernel tells it of changes of devices, queueing
// disciplines, routes and firewall rules, so that it knows when they happened and costs nothing while nothing does; of sysctls it
// only knows in the end that they differ. It is safe for concurrent use.
type ConfigWatch struct {
	inside  func(func() error) error // runs a function in the namespace
	sysctls []string
	names   []string // of features

	mu      sync.Mutex
	last    Config
	noticed bool // that something changed, and not read since
	changes []result.ConfigChange
	err     error // of reading after a change

	notices []*os.File
	readers sync.WaitGroup
	closing sync.Once
	closed  error
}

// settleChanges is how long after a notice the configuration is read: one command may make many of them.
const settleChanges = 5 * time.Millisecond

// WatchConfig begins to watch a namespace, in which inside runs functions.
func WatchConfig(inside func(func() error) error, sysctls []string) (*ConfigWatch, error) {
	w := &ConfigWatch{inside: inside, sysctls: sysctls}
	err := inside(func() (err error) {
		if err = w.subscribe(); err != nil {
			return err
		}
		e, err := OpenEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		if w.names, err = e.FeatureNames("lo"); err != nil {
			return err
		}
		w.last, err = ReadConfig(sysctls, nil)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	for _, f := range w.notices {
		w.readers.Go(func() { w.follow(f) })
	}
	return w, nil
}

// subscribe opens the sockets on which the kernel tells of changes, in the namespace of the calling thread.
func (w *ConfigWatch) subscribe() error {
	for protocol, groups := range map[int][]int{
		unix.NETLINK_ROUTE: {
			unix.RTNLGRP_LINK, unix.RTNLGRP_TC, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE,
		},
		unix.NETLINK_NETFILTER: {unix.NFNLGRP_NFTABLES},
	} {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open a netlink socket: %w", err)
		}
		f := os.NewFile(uintptr(fd), "netlink")
		w.notices = append(w.notices, f)
		if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return fmt.Errorf("ask to be told of changes: %w", err)
		}
		for _, g := range groups {
			// A group that this kernel does not have tells nothing; what changed is still found in the end.
			if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g); err != nil && !errors.Is(err, unix.EINVAL) {
				return fmt.Errorf("ask to be told of changes: %w", err)
			}
		}
	}
	return nil
}

// follow reads notices until the socket is closed.
func (w *ConfigWatch) follow(notices *os.File) {
	buffer := make([]byte, 16<<10)
	for {
		_, err := notices.Read(buffer)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil && !errors.Is(err, unix.ENOBUFS) { // there were more of them than room
			return
		}
		at := time.Now()
		w.mu.Lock()
		w.noticed = true
		w.mu.Unlock()
		time.Sleep(settleChanges)
		w.look(at)
	}
}

// look reads the configuration and keeps what changed, with when that was, as far as it is known.
func (w *ConfigWatch) look(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return
	}
	var now Config
	err := w.inside(func() (err error) {
		if !w.noticed {
			now, err = w.last.readUntold(w.sysctls)
			return err
		}
		now, err = ReadConfig(w.sysctls, w.last)
		return err
	})
	if err != nil {
		w.err = err
		return
	}
	for _, c := range w.last.Changes(now, w.names) {
		if _, sysctl := now[Setting{c.Device, c.Setting}]; !at.IsZero() && !(sysctl && slices.Contains(w.sysctls, c.Setting)) {
			c.At = at
		}
		w.changes = append(w.changes, c)
	}
	w.last, w.err, w.noticed = now, nil, false
}

// End reads once more what the kernel tells nothing of, and returns all that changed since the watch began.
func (w *ConfigWatch) End() ([]result.ConfigChange, error) {
	w.look(time.Time{})
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.changes), w.err
}

// Close ends the watch. It is idempotent.
func (w *ConfigWatch) Close() error {
	w.closing.Do(func() {
		w.mu.Lock()
		w.last = nil
		w.mu.Unlock()
		for _, f := range w.notices {
			w.closed = errors.Join(w.closed, f.Close())
		}
		w.readers.Wait()
	})
	return w.closed
}

// linkState is the setting that every device has. It sorts before all others, so that a device that is gone is named once.
const linkState = " state"

// numberSetting is a device's number: with another one it is another device of the same name.
const numberSetting = "number"

// linkQuestion asks for all devices.
func linkQuestion() []byte {
	return append(nl.NewIfInfomsg(unix.AF_UNSPEC).Serialize(), nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStats)).Serialize()...)
}

// addLink takes over what is configured of a device, and notes its name by its number.
func (c Config) addLink(body []byte, names map[int]string) {
	if len(body) < unix.SizeofIfInfomsg {
		return
	}
	order := binary.NativeEndian
	m := nl.DeserializeIfInfomsg(body)
	index, flags := int(m.Index), m.Flags
	values := map[uint16][]byte{}
	for kind, value := range attributes(body[unix.SizeofIfInfomsg:]) {
		values[kind] = value
	}
	name := string(bytes.TrimRight(values[unix.IFLA_IFNAME], "\x00"))
	if name == "" {
		return
	}
	names[index] = name
	c[Setting{name, numberSetting}] = strconv.Itoa(index)
	state := "down"
	if flags&unix.IFF_UP != 0 {
		state = "up"
		if flags&unix.IFF_LOWER_UP == 0 {
			state = "up without carrier"
		}
	}
	c[Setting{name, linkState}] = state
	for _, a := range []struct {
		kind    uint16
		setting string
	}{
		{unix.IFLA_MTU, "mtu"}, {unix.IFLA_TXQLEN, "txqueuelen"}, {unix.IFLA_GSO_MAX_SIZE, "gso_max_size"}, {unix.IFLA_GSO_MAX_SEGS, "gso_max_segs"},
		{unix.IFLA_GRO_MAX_SIZE, "gro_max_size"}, {unix.IFLA_GSO_IPV4_MAX_SIZE, "gso_ipv4_max_size"}, {unix.IFLA_GRO_IPV4_MAX_SIZE, "gro_ipv4_max_size"},
		{unix.IFLA_MASTER, "master"},
	} {
		if v := values[a.kind]; len(v) == 4 {
			c[Setting{name, a.setting}] = strconv.FormatUint(uint64(order.Uint32(v)), 10)
		}
	}
	if a := values[unix.IFLA_ADDRESS]; len(a) > 0 {
		c[Setting{name, "address"}] = net.HardwareAddr(a).String()
	}
	for kind, value := range attributes(values[unix.IFLA_XDP]) {
		if kind == unix.IFLA_XDP_PROG_ID && len(value) == 4 {
			c[Setting{name, "xdp program"}] = fmt.Sprintf("program %d", order.Uint32(value))
		}
	}
}

// addQdisc takes over a queueing discipline, and notes the devices that may have filters.
func (c Config) addQdisc(body []byte, names map[int]string, filtered map[int]bool) {
	if len(body) < nl.SizeofTcMsg {
		return
	}
	m := nl.DeserializeTcMsg(body)
	kind, options := "", []byte(nil)
	for a, value := range attributes(body[nl.SizeofTcMsg:]) {
		switch a {
		case unix.TCA_KIND:
			kind = string(bytes.TrimRight(value, "\x00"))
		case unix.TCA_OPTIONS:
			options = value
		}
	}
	if kind != "noqueue" && kind != "mq" {
		filtered[int(m.Ifindex)] = true
	}
	c[Setting{names[int(m.Ifindex)], "qdisc " + parentName(m.Parent)}] = qdiscText(kind, options)
}

// parentName is where a queueing discipline or a filter is.
func parentName(parent uint32) string {
	switch parent {
	case netlink.HANDLE_ROOT:
		return "root"
	case netlink.HANDLE_INGRESS, netlink.HANDLE_MIN_INGRESS:
		return "ingress"
	case netlink.HANDLE_MIN_EGRESS:
		return "egress"
	}
	return fmt.Sprintf("%x:%x", parent>>16, parent&0xFFFF)
}

// qdiscText is a queueing discipline with what it does to packets where that is known, and else with a sum of its options.
func qdiscText(kind string, options []byte) string {
	order := binary.NativeEndian
	switch {
	case kind == "netem" && len(options) >= nl.SizeofTcNetemQopt:
		const latency64 = 10 // TCA_NETEM_LATENCY64
		text := kind
		if loss := nl.DeserializeTcNetemQopt(options).Loss; loss > 0 {
			text += fmt.Sprintf(" loss %.3g%%", 100*float64(loss)/(1<<32))
		}
		for a, value := range attributes(options[nl.SizeofTcNetemQopt:]) {
			if a == latency64 && len(value) == 8 {
				text += " delay " + unit.Duration(time.Duration(order.Uint64(value)))
			}
		}
		return text + " " + sum(options)
	case len(options) == 0, kind == "htb": // the options of htb hold a counter
		return kind
	}
	return kind + " " + sum(options)
}

// sum is a checksum of options that are not put in words.
func sum(options []byte) string {
	h := fnv.New32a()
	_, _ = h.Write(options)
	return fmt.Sprintf("(options %08x)", h.Sum32())
}

// readFilters reads the filters of a device that has a queueing discipline to hold them.
func (c Config) readFilters(socket *netlinkSocket, index int, device string) error {
	for _, parent := range []uint32{netlink.HANDLE_ROOT, netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		ask := nl.TcMsg{Ifindex: int32(index)}
		if parent != netlink.HANDLE_ROOT {
			ask.Parent = parent
		}
		var all []string
		err := socket.dump(unix.RTM_GETTFILTER, ask.Serialize(), func(body []byte) {
			if text := filterText(body); text != "" {
				all = append(all, text)
			}
		})
		if errors.Is(err, unix.EINTR) {
			return err
		}
		if err == nil && len(all) > 0 { // where the device can have no filters there, the kernel refuses to list them
			c[Setting{device, "filters " + parentName(parent)}] = strings.Join(all, ", ")
		}
	}
	return nil
}

// filterText is a filter's kind, place and program.
func filterText(body []byte) string {
	if len(body) < nl.SizeofTcMsg {
		return ""
	}
	m := nl.DeserializeTcMsg(body)
	kind, program := "", ""
	for a, value := range attributes(body[nl.SizeofTcMsg:]) {
		switch a {
		case unix.TCA_KIND:
			kind = string(bytes.TrimRight(value, "\x00"))
		case unix.TCA_OPTIONS:
			for b, v := range attributes(value) {
				if kind == "bpf" && b == nl.TCA_BPF_ID && len(v) == 4 {
					program = fmt.Sprintf(" program %d", binary.NativeEndian.Uint32(v))
				}
			}
		}
	}
	if m.Handle == 0 { // the head of a chain
		return ""
	}
	return fmt.Sprintf("%s %d:%x%s", kind, m.Info>>16, m.Handle, program)
}

// hooks are the settings of programs at hooks of their own, of which the kernel sends no notices.
func hooks() []string {
	return []string{"tcx program ingress", "tcx program egress", "netkit program", "netkit peer program"}
}

// readAttached reads the programs at devices' tcx and netkit hooks. Without the right to ask there are none to be seen.
func (c Config) readAttached(names map[int]string) {
	for i, at := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress, ebpf.AttachNetkitPrimary, ebpf.AttachNetkitPeer} {
		for index, device := range names {
			found, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: at})
			if err != nil || len(found.Programs) == 0 {
				continue
			}
			all := gather.Each(found.Programs, func(p link.AttachedProgram) string { return fmt.Sprintf("program %d", p.ID) })
			c[Setting{device, hooks()[i]}] = strings.Join(all, ", ")
		}
	}
}
