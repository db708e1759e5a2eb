package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Only what network cards interrupt for is counted, by processor: also where one of these is off, and has no column.
func TestCardInterrupts(t *testing.T) {
	root := t.TempDir()
	for path, text := range map[string]string{
		"sys/bus/pci/devices/0000:00:01.0/class": "0x020000\n", "sys/bus/pci/devices/0000:00:01.0/msi_irqs/24": "msix\n",
		"sys/bus/pci/devices/0000:00:01.0/msi_irqs/25": "msix\n", "sys/bus/pci/devices/0000:00:02.0/class": "0x010802\n",
		"sys/bus/pci/devices/0000:00:02.0/msi_irqs/26": "msix\n",
		"proc/interrupts": "           CPU0       CPU2\n 24:          5          0  PCI-MSIX  0-edge      eth0-0\n 25:          7      1000  PCI-MSIX  1-edge      eth0-1\n" +
			" 26:          9          9  PCI-MSIX  0-edge      nvme0\nNMI:          3          3   Non-maskable interrupts\nERR:          0\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := cardInterrupts(root).read(filepath.Join(root, "proc/interrupts")); !slices.Equal(got, []uint64{12, 0, 1000}) {
		t.Errorf("the processors took %v interrupts of cards, want 12 and 1000", got)
	}
	if got := cardInterrupts(t.TempDir()).read(filepath.Join(root, "proc/interrupts")); got != nil {
		t.Errorf("without cards %v were counted", got)
	}
}
