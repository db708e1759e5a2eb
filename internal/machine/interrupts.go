package machine

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// networkClass begins the class of a PCI device that is a network card, as sysfs writes it.
const networkClass = "0x02"

// Interrupts are the numbers of interrupts, as /proc/interrupts names them.
type Interrupts map[string]bool

// CardInterrupts are the interrupts of all network cards on the PCI bus, in whatever namespace these are.
func CardInterrupts() Interrupts { return cardInterrupts("/") }

func cardInterrupts(root string) Interrupts {
	all := Interrupts{}
	classes, _ := filepath.Glob(filepath.Join(root, "sys/bus/pci/devices/*/class"))
	for _, c := range classes {
		if !strings.HasPrefix(Fact(c), networkClass) {
			continue
		}
		numbers, _ := filepath.Glob(filepath.Join(filepath.Dir(c), "msi_irqs", "*"))
		for _, n := range numbers {
			all[filepath.Base(n)] = true
		}
	}
	return all
}

// read counts the interrupts since the machine's start, by the number of the processor that took them; nil where that can't be read.
func (i Interrupts) read(path string) []uint64 {
	if len(i) == 0 {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // some containers don't see it
	}
	head, lines, _ := bytes.Cut(text, []byte{'\n'})
	var processors []int
	for _, name := range strings.Fields(string(head)) {
		n, _ := strconv.Atoi(strings.TrimPrefix(name, "CPU"))
		processors = append(processors, n)
	}
	if len(processors) == 0 {
		return nil
	}
	counts := make([]uint64, processors[len(processors)-1]+1)
	for line := range bytes.Lines(lines) {
		number, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte{':'})
		if !i[string(number)] {
			continue
		}
		for k, field := range strings.Fields(string(rest)) {
			if k == len(processors) {
				break // what follows says what it is
			}
			n, _ := strconv.ParseUint(field, 10, 64)
			counts[processors[k]] += n
		}
	}
	return counts
}
