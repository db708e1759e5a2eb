package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"netdelta/testbed"
)

// Attached are programs at their places, with the tables that they use. Close takes them away; it may be called twice.
type Attached struct{ parts []io.Closer }

// hold has Close close a part, before those that came first.
func (a *Attached) hold(part io.Closer) { a.parts = append(a.parts, part) }

// Close implements io.Closer.
func (a *Attached) Close() error {
	var err error
	for _, part := range slices.Backward(a.parts) {
		err = errors.Join(err, part.Close())
	}
	a.parts = nil
	return err
}

// closing makes a closer of a function that can't fail.
type closing func()

// Close implements io.Closer.
func (c closing) Close() error {
	c()
	return nil
}

// loader loads programs and tables into the kernel, fills and attaches them. After an error it does nothing more; done returns the error.
type loader struct {
	Attached
	programs  map[string]*ebpf.Program
	maps      map[string]*ebpf.Map
	variables map[string]*ebpf.Variable
	number    func(device string) (int, error)
	err       error
}

// load loads a collection. The function set, if there is one, has it first, and number finds devices.
func load(
	read func() (*ebpf.CollectionSpec, error), set func(*ebpf.CollectionSpec) error, number func(device string) (int, error),
) *loader {
	l := &loader{number: number}
	spec, err := read()
	if err == nil && set != nil {
		err = set(spec)
	}
	if err != nil {
		l.err = err
		return l
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		l.err = refusal("load eBPF programs", err)
		return l
	}
	l.hold(closing(c.Close))
	l.programs, l.maps, l.variables = c.Programs, c.Maps, c.Variables
	return l
}

// device is the number of a device.
func (l *loader) device(name string) (number int) {
	if l.err == nil {
		number, l.err = l.number(name)
	}
	return number
}

// put enters something into a table.
func (l *loader) put(table string, what any, key, value any) {
	if l.err != nil {
		return
	}
	if err := l.maps[table].Put(key, value); err != nil {
		l.err = fmt.Errorf("enter %s: %w", what, err)
	}
}

// attach puts a program at a device's incoming or outgoing packets. A guard comes before all others.
func (l *loader) attach(program string, device int, where ebpf.AttachType, before link.Anchor) {
	if l.err != nil {
		return
	}
	at, err := link.AttachTCX(link.TCXOptions{Interface: device, Program: l.programs[program], Attach: where, Anchor: before})
	l.attached("attach an eBPF program to a device", at, err)
}

// attached holds what was attached.
func (l *loader) attached(doing string, at io.Closer, err error) {
	if err != nil {
		l.err = refusal(doing, err)
		return
	}
	l.hold(at)
}

// done returns what was attached, or takes it away after an error.
func (l *loader) done() (*Attached, error) {
	if l.err != nil {
		_ = l.Close() // what failed first is what counts
		return nil, l.err
	}
	return &l.Attached, nil
}

// feature is what errors say is unsupported, until the caller knows better what it was asked for.
const feature = "an eBPF datapath"

// logTail is how many lines of the verifier's log are kept: the last ones say what it refuses.
const logTail = 6

// refusal tells what the kernel lacks, or does not allow, from failures.
func refusal(doing string, err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.As(err, &verifier):
		log := verifier.Log[max(0, len(verifier.Log)-logTail):]
		return &testbed.UnsupportedError{
			Feature: feature,
			Need:    fmt.Sprintf("a kernel whose verifier takes the eBPF program; this one says %q", strings.Join(log, "; ")),
			Fix:     "run it on another kernel, Linux 6.12 say",
		}
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return &testbed.UnsupportedError{
			Feature: feature,
			Need:    "the right to load eBPF programs (CAP_BPF and CAP_NET_ADMIN outside of user namespaces)",
			Fix:     "run it as root",
		}
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EOPNOTSUPP):
		return &testbed.UnsupportedError{
			Feature: feature,
			Need:    "a kernel that can " + doing + " (" + err.Error() + ")",
			Fix:     "run it on Linux 6.6 or later with CONFIG_BPF_SYSCALL and CONFIG_NET_XGRESS",
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// words are an address as the programs hold it: one of IPv4 is mapped into IPv6.
func words(a netip.Addr) (w [4]uint32) {
	bytes := a.As16()
	for i := range w {
		w[i] = binary.NativeEndian.Uint32(bytes[4*i:])
	}
	return w
}

// bits is the length of a prefix as the programs hold it.
func bits(p netip.Prefix) uint32 { return uint32(128 - p.Addr().BitLen() + p.Bits()) }
