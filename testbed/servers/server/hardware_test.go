package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"
)

// A card's interrupts are found at its device, a virtio card's at the device above it; of its queues those count that it uses.
func TestHardware(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"sys/pci/0000/msi_irqs/24": "msix", "sys/pci/0000/msi_irqs/25": "msix", "sys/pci/0000/msi_irqs/26": "msix", "sys/pci/0000/numa_node": "1\n",
		"sys/pci/0001/msi_irqs/27": "msix", "sys/pci/0001/virtio0/numa_node": "-1\n",
		"proc/irq/24/effective_affinity_list": "10\n", "proc/irq/25/effective_affinity_list": "", "proc/irq/25/smp_affinity_list": "2-3\n",
		"sys/class/net/eth0/queues/rx-0/rps_cpus": "0\n", "sys/class/net/eth0/queues/rx-1/rps_cpus": "0\n", "sys/class/net/eth0/queues/tx-0/xps_cpus": "0\n",
		"proc/irq/26/effective_affinity_list": "10\n", "proc/irq/27/smp_affinity_list": "0\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"eth0": "sys/pci/0000", "eth1": "sys/pci/0001/virtio0"} {
		dir := filepath.Join(root, "sys/class/net", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		err := os.Symlink(filepath.Join(root, to), filepath.Join(dir, "device"))
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "address"), []byte("02:00:00:00:00:01\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		mac  byte
		want CardReport
	}{
		{"eth0", 1, CardReport{Queues: 2, Interrupts: "2-3,10", NUMA: "1"}}, {"eth1", 1, CardReport{Queues: 4, Interrupts: "0"}},
		{"eth1", 2, CardReport{Queues: 4}}, {"veth0", 1, CardReport{Queues: 4}},
	} {
		var got CardReport
		got.hardware(root, &netlink.LinkAttrs{Name: c.name, NumRxQueues: 4, HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, c.mac}})
		if got.Queues != c.want.Queues || got.Interrupts != c.want.Interrupts || got.NUMA != c.want.NUMA {
			t.Errorf("%s is %+v, want %+v", c.name, got, c.want)
		}
	}
}
