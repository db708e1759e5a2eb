package server

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"netdelta/internal/machine"
	"netdelta/testbed/lab"
)

// without are the offloads that a card of the calling thread's namespace does not do. Large receive offload is not missed: the kernel
// switches it off where it forwards.
func without(card string) (names []string) {
	offloads, err := lab.Offloads(card)
	if err != nil {
		return nil
	}
	for name, on := range offloads {
		if !on && name != "lro" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hardware adds to a report how a card hands packets to processors: the queues that it uses, the processors that its interrupts go to, and the node of
// memory that it is at. root is "/" but in tests.
func (c *CardReport) hardware(root string, a *netlink.LinkAttrs) {
	c.Queues = a.NumRxQueues
	files := filepath.Join(root, "sys/class/net", a.Name)
	if machine.Fact(filepath.Join(files, "address")) != a.HardwareAddr.String() {
		return // of a card of this name in another namespace, whose files are mounted here
	}
	if used, _ := filepath.Glob(filepath.Join(files, "queues", "rx-*")); len(used) > 0 {
		c.Queues = len(used) // a driver makes room for more than it uses
	}
	device := filepath.Join(files, "device")
	c.NUMA = machine.Fact(filepath.Join(device, "numa_node"))
	if c.NUMA == "-1" {
		c.NUMA = "" // there is one node
	}
	// A virtio card has them at the device above it.
	vectors, _ := filepath.Glob(filepath.Join(device, "msi_irqs", "*"))
	if above, err := filepath.EvalSymlinks(device); err == nil && len(vectors) == 0 {
		vectors, _ = filepath.Glob(filepath.Join(filepath.Dir(above), "msi_irqs", "*"))
	}
	var cpus []string
	for _, v := range vectors {
		irq := filepath.Join(root, "proc/irq", filepath.Base(v))
		if at := cmp.Or(machine.Fact(filepath.Join(irq, "effective_affinity_list")), machine.Fact(filepath.Join(irq, "smp_affinity_list"))); at != "" {
			cpus = append(cpus, at)
		}
	}
	slices.SortFunc(cpus, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	})
	c.Interrupts = strings.Join(slices.Compact(cpus), ",")
}
