package nsmonitor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"netdelta/unit"
)

// linkState is the setting that every device has. It sorts before all others, so that a device that is gone is named once.
const linkState = " state"

// numberSetting is a device's number: with another one it is another device of the same name.
const numberSetting = "number"

// linkQuestion asks for all devices.
func linkQuestion() []byte {
	order := binary.NativeEndian
	ask := make([]byte, unix.SizeofIfInfomsg, 32)
	ask = order.AppendUint16(ask, unix.SizeofRtAttr+4)
	ask = order.AppendUint16(ask, unix.IFLA_EXT_MASK)
	return order.AppendUint32(ask, skipStats)
}

// addLink takes over what is configured of a device, and notes its name by its number.
func (c Config) addLink(body []byte, names map[int]string) {
	if len(body) < unix.SizeofIfInfomsg {
		return
	}
	order := binary.NativeEndian
	const indexAt, flagsAt = 4, 8
	index, flags := int(int32(order.Uint32(body[indexAt:]))), order.Uint32(body[flagsAt:])
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

// sizeofTcmsg is the length of struct tcmsg, which has a number of a device, a handle, a parent and more.
const (
	sizeofTcmsg = 20
	tcIndexAt   = 4
	tcHandleAt  = 8
	tcParentAt  = 12
	tcInfoAt    = 16
)

// Parents of queueing disciplines and filters, of linux/pkt_sched.h.
const (
	parentRoot    = 0xFFFFFFFF
	parentIngress = 0xFFFFFFF1
	clsactIngress = 0xFFFFFFF2
	clsactEgress  = 0xFFFFFFF3
)

// addQdisc takes over a queueing discipline, and notes the devices that may have filters.
func (c Config) addQdisc(body []byte, names map[int]string, filtered map[int]bool) {
	if len(body) < sizeofTcmsg {
		return
	}
	order := binary.NativeEndian
	index, parent := int(int32(order.Uint32(body[tcIndexAt:]))), order.Uint32(body[tcParentAt:])
	kind, options := "", []byte(nil)
	for a, value := range attributes(body[sizeofTcmsg:]) {
		switch a {
		case unix.TCA_KIND:
			kind = string(bytes.TrimRight(value, "\x00"))
		case unix.TCA_OPTIONS:
			options = value
		}
	}
	if kind != "noqueue" && kind != "mq" {
		filtered[index] = true
	}
	c[Setting{names[index], "qdisc " + parentName(parent)}] = qdiscText(kind, options)
}

// parentName is where a queueing discipline or a filter is.
func parentName(parent uint32) string {
	switch parent {
	case parentRoot:
		return "root"
	case parentIngress, clsactIngress:
		return "ingress"
	case clsactEgress:
		return "egress"
	}
	return fmt.Sprintf("%x:%x", parent>>16, parent&0xFFFF)
}

// qdiscText is a queueing discipline with what it does to packets where that is known, and else with a sum of its options.
func qdiscText(kind string, options []byte) string {
	order := binary.NativeEndian
	switch {
	case kind == "netem" && len(options) >= 24:
		const lossAt, latency64 = 8, 10
		text := kind
		if loss := order.Uint32(options[lossAt:]); loss > 0 {
			text += fmt.Sprintf(" loss %.3g%%", 100*float64(loss)/(1<<32))
		}
		for a, value := range attributes(options[24:]) {
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
	order := binary.NativeEndian
	for _, parent := range []uint32{parentRoot, clsactIngress, clsactEgress} {
		ask := make([]byte, sizeofTcmsg)
		order.PutUint32(ask[tcIndexAt:], uint32(index))
		if parent != parentRoot {
			order.PutUint32(ask[tcParentAt:], parent)
		}
		var all []string
		err := socket.dump(unix.RTM_GETTFILTER, ask, func(body []byte) {
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
	if len(body) < sizeofTcmsg {
		return ""
	}
	order := binary.NativeEndian
	handle, info := order.Uint32(body[tcHandleAt:]), order.Uint32(body[tcInfoAt:])
	kind, program := "", ""
	for a, value := range attributes(body[sizeofTcmsg:]) {
		switch a {
		case unix.TCA_KIND:
			kind = string(bytes.TrimRight(value, "\x00"))
		case unix.TCA_OPTIONS:
			const programID = 11 // TCA_BPF_ID
			for b, v := range attributes(value) {
				if kind == "bpf" && b == programID && len(v) == 4 {
					program = fmt.Sprintf(" program %d", order.Uint32(v))
				}
			}
		}
	}
	if handle == 0 { // the head of a chain
		return ""
	}
	return fmt.Sprintf("%s %d:%x%s", kind, info>>16, handle, program)
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
			var all []string
			for _, p := range found.Programs {
				all = append(all, fmt.Sprintf("program %d", p.ID))
			}
			c[Setting{device, hooks()[i]}] = strings.Join(all, ", ")
		}
	}
}
