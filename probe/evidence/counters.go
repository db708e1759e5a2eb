// Package evidence reads what the kernel knows of a network namespace without anything being changed: all that its stack, its devices
// and its queues count. It judges nothing: package insight/cause does.
package evidence

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"netdelta/testbed/nsmonitor"
)

// Counters are what was counted in a network namespace since it was made. The names are the kernel's own:
//
//	Tcp.RetransSegs, TcpExt.DelayedACKs, IpExt.InCsumErrors   /proc/net/snmp and /proc/net/netstat: protocol and counter
//	Ip6.InDiscards, Udp6.RcvbufErrors                          /proc/net/snmp6
//	conntrack.insert_failed                                    /proc/net/stat/nf_conntrack, of all processors
//	neighbour.table_fulls                                      /proc/net/stat/arp_cache and ndisc_cache, of all processors
//	eth0 rx_drop, eth0 tx_errs                                 /proc/net/dev: device and counter
//	eth0 tbf drops, eth0 tbf overlimits                        the queueing disciplines of a device
//	softnet.dropped, softnet.squeezed                          /proc/net/softnet_stat, of all processors: the whole machine's
//
// Counters of bytes and packets of devices are among them.
type Counters map[string]uint64

// OfMachine says whether a counter is the whole machine's, the same in every network namespace.
func OfMachine(name string) bool {
	return strings.HasPrefix(name, "softnet.") || strings.HasPrefix(name, "neighbour.")
}

// Since is what was counted after an earlier reading of the same namespace. What did not change is not in it.
func (c Counters) Since(before Counters) Counters {
	since := Counters{}
	for name, n := range c {
		if n > before[name] {
			since[name] = n - before[name]
		}
	}
	return since
}

// Add adds other counts to these.
func (c Counters) Add(other Counters) {
	for name, n := range other {
		c[name] += n
	}
}

// ReadCounters reads the counters of the calling thread's network namespace. What this kernel does not count is not among them.
func ReadCounters() (Counters, error) {
	c := Counters{}
	for _, source := range []struct {
		file  string
		parse func(Counters, []byte) error
	}{
		{"snmp", parseTable}, {"netstat", parseTable}, {"snmp6", parseSNMP6}, {"dev", parseDevices}, {"softnet_stat", parseSoftnet},
		{"stat/nf_conntrack", perProcessor("conntrack")}, {"stat/arp_cache", perProcessor("neighbour")}, {"stat/ndisc_cache", perProcessor("neighbour")},
	} {
		file := "/proc/thread-self/net/" + source.file
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without it: no IPv6, or no conntrack here
		}
		if err != nil {
			return nil, fmt.Errorf("read the counters of a network namespace: %w", err)
		}
		if err := source.parse(c, text); err != nil {
			return nil, fmt.Errorf("read the counters in %s: %w", file, err)
		}
	}
	return c, c.readQueues()
}

// parseTable takes tables of two lines, of names and of values, that begin with the name of a protocol.
func parseTable(c Counters, text []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	var names []string
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if names == nil || names[0] != fields[0] {
			names = fields
			continue
		}
		if len(fields) != len(names) {
			return fmt.Errorf("%s has %d names and %d values", names[0], len(names)-1, len(fields)-1)
		}
		for i, value := range fields[1:] {
			n, err := strconv.ParseInt(value, 10, 64) // some that are no counters may be negative: Tcp.MaxConn
			if err != nil {
				return fmt.Errorf("%s%s: %w", names[0], names[i+1], err)
			}
			if n >= 0 {
				c[strings.TrimSuffix(names[0], ":")+"."+names[i+1]] = uint64(n)
			}
		}
		names = nil
	}
	return lines.Err()
}

// parseSNMP6 takes lines of a name, such as Udp6RcvbufErrors, and a value.
func parseSNMP6(c Counters, text []byte) error {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) != 2 {
			return fmt.Errorf("line %q: want a name and a value", bytes.TrimSpace(line))
		}
		n, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", fields[0], err)
		}
		protocol, name, found := strings.Cut(fields[0], "6")
		if !found {
			continue
		}
		c[protocol+"6."+name] = n
	}
	return nil
}

// parseDevices takes /proc/net/dev: two lines of headings, then a line for each device. See proc_net(5).
func parseDevices(c Counters, text []byte) error {
	names := []string{
		"rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast",
		"tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier", "tx_compressed",
	}
	for line := range bytes.Lines(text) {
		device, rest, found := strings.Cut(string(line), ":")
		if !found {
			continue // a heading
		}
		values := strings.Fields(rest)
		if len(values) < len(names) {
			return fmt.Errorf("device %s has %d values, not %d", strings.TrimSpace(device), len(values), len(names))
		}
		for i, name := range names {
			n, err := strconv.ParseUint(values[i], 10, 64)
			if err != nil {
				return fmt.Errorf("%s of device %s: %w", name, strings.TrimSpace(device), err)
			}
			c[strings.TrimSpace(device)+" "+name] = n
		}
	}
	return nil
}

// The places of the values in a line of /proc/net/softnet_stat (softnet_seq_show in net/core/net-procfs.c).
const (
	softnetDropped  = 1
	softnetSqueezed = 2
)

// parseSoftnet takes a line of hexadecimal values for each processor.
func parseSoftnet(c Counters, text []byte) error {
	for line := range bytes.Lines(text) {
		values := strings.Fields(string(line))
		if len(values) <= softnetSqueezed {
			return fmt.Errorf("line %q has too few values", bytes.TrimSpace(line))
		}
		for name, at := range map[string]int{"softnet.dropped": softnetDropped, "softnet.squeezed": softnetSqueezed} {
			n, err := strconv.ParseUint(values[at], 16, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			c[name] += n
		}
	}
	return nil
}

// perProcessor takes a line of names and a line of hexadecimal values for each processor. The first value, entries, is no count.
func perProcessor(what string) func(Counters, []byte) error {
	return func(c Counters, text []byte) error {
		var names []string
		for line := range bytes.Lines(text) {
			fields := strings.Fields(string(line))
			if names == nil {
				names = fields
				continue
			}
			for i, value := range fields[min(1, len(fields)):] {
				n, err := strconv.ParseUint(value, 16, 64)
				switch {
				case i+1 >= len(names):
					return fmt.Errorf("a value without a name in %q", bytes.TrimSpace(line))
				case err != nil:
					return fmt.Errorf("%s: %w", names[i+1], err)
				}
				c[what+"."+names[i+1]] += n
			}
		}
		return nil
	}
}

// readQueues reads what the queueing disciplines of all devices count.
func (c Counters) readQueues() error {
	queues, err := nsmonitor.Queues()
	for _, q := range queues {
		name := q.Device + " " + q.Kind + " "
		c[name+"drops"] += q.Dropped
		c[name+"overlimits"] += q.Overlimit
		c[name+"requeues"] += q.Requeued
	}
	return err
}
