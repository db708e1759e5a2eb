package vm

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/testbed/vm/image"
	"netdelta/testbed/vm/wire"
)

// TestInvalid: what can't be is refused before anything is started, and says why.
func TestInvalid(t *testing.T) {
	script := []wire.Command{{Path: "/netdelta"}}
	for says, m := range map[string]Machine{
		"65 processors":       {CPUs: 65},
		"-1 processors":       {CPUs: -1},
		"100 MiB of memory":   {Memory: 100 << 20},
		"don't reach":         {Cards: 1, Memory: 4 << 30},
		"with more than":      {Links: []Link{{Functions: true}}, Memory: 4 << 30},
		"21 links":            {Links: make([]Link, 21)},
		"5 cards":             {Cards: 5},
		`"hvf" is no`:         {Accel: "hvf"},
		"takes one processor": {Exact: &Exact{}, CPUs: 2, Script: script},
		"takes tcg":           {Exact: &Exact{}, Accel: KVM, Script: script},
		"takes a script":      {Exact: &Exact{}},
		"no network cards":    {Exact: &Exact{}, Script: script, Cards: 1},
		"2^11 ns":             {Exact: &Exact{Shift: 11}, Script: script},
		"no absolute path":    {Files: []File{{"a", "b"}}},
	} {
		_, err := m.complete()
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v, not one that says %q", m, err, says)
		}
	}
}

// TestDynamic: a program that a guest could not run is refused on the host, where it can be fixed.
func TestDynamic(t *testing.T) {
	for _, p := range []string{"/bin/sh", "/usr/bin/bash"} {
		if _, err := os.Stat(p); err != nil {
			continue
		}
		_, err := Machine{Program: p}.complete()
		if err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
			t.Errorf("%s: got %v", p, err)
		}
		return
	}
	t.Error("this machine has no shell")
}

// TestLinks: a card is joined to another guest or to a tap device, and one with virtual functions is behind a port of its own.
func TestLinks(t *testing.T) {
	args := strings.Join(Machine{Cards: 1, Links: []Link{{MAC: "m0", MTU: 9000}, {MAC: "m1", Tap: true}, {MAC: "m2", Tap: true, Functions: true}}}.links(), " ")
	for _, want := range []string{
		"-netdev stream,id=link0,server=off,addr.type=fd,addr.str=6 -device virtio-net-pci,netdev=link0,mac=m0,romfile=,host_mtu=9000",
		"-netdev tap,id=link1,fd=7 -device virtio-net-pci,netdev=link1,mac=m1,romfile=",
		"-netdev tap,id=link2,fd=8 -device pcie-root-port,id=linkport2,slot=4,chassis=4 -device igb,bus=linkport2,netdev=link2,mac=m2,romfile=",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("%q is not in %s", want, args)
		}
	}
}

// TestArguments: no guest gets at this machine's network, and an exact one at no clock but its own.
func TestArguments(t *testing.T) {
	plain := Machine{CPUs: 2, Memory: 1 << 30, Accel: TCG}.arguments("kernel")
	if k := slices.Index(plain, "-nic"); k < 0 || plain[k+1] != "none" {
		t.Errorf("it does not say -nic none: %q", plain)
	}
	all := Machine{CPUs: 2, Memory: 1 << 30, Accel: TCG, Cards: 2, Links: []Link{{MAC: "02:00:00:00:00:01", MTU: 9000}}}
	for _, a := range all.arguments("kernel") {
		if strings.HasPrefix(a, "user") || strings.HasPrefix(a, "tap") || strings.HasPrefix(a, "bridge") {
			t.Errorf("it reaches this machine's network: %s", a)
		}
	}
	joined := strings.Join(all.arguments("kernel"), " ")
	for _, want := range []string{"addr.type=fd,addr.str=6", "host_mtu=9000", "igb,bus=port1,netdev=hub1"} {
		if !strings.Contains(joined, want) {
			t.Errorf("it lacks %s: %s", want, joined)
		}
	}
	exact := strings.Join(Machine{CPUs: 1, Memory: 1 << 30, Accel: TCG, Exact: &Exact{Shift: 1, Seed: 7}, Script: []wire.Command{{Path: "a"}}}.arguments("kernel"), " ")
	for _, want := range []string{"-icount shift=1,sleep=off", "-seed 7", "clock=vm", "lpj=4000000", "thread=single"} {
		if !strings.Contains(exact, want) {
			t.Errorf("an exact machine lacks %s: %s", want, exact)
		}
	}
	if strings.Contains(exact, "virtio") {
		t.Errorf("an exact machine has a device that goes by this machine's clock: %s", exact)
	}
}

// TestEmulator: QEMU uses its own files, not this machine's.
func TestEmulator(t *testing.T) {
	path, args, env := image.Image{Dir: "/images/x"}.Emulator()
	for _, s := range slices.Concat([]string{path}, args[1:2], env) {
		if !strings.Contains(s, "/images/x/qemu/") {
			t.Errorf("%s is not in the image", s)
		}
	}
}

func TestProcessorTime(t *testing.T) {
	if processorTime(os.Getpid()) > time.Hour {
		t.Error("this process has used more than an hour")
	}
}
