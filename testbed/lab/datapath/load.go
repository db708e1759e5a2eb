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

	"netdelta/network"
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

// Balance attaches the programs that translate virtual addresses at a client's device, which is called by its number. It is
// called inside the client's namespace. Its error is an *testbed.UnsupportedError where this can't be had.
func Balance(op network.Balance, device int) (*Attached, error) {
	l := load(loadBalance, func(spec *ebpf.CollectionSpec) error {
		spec.Maps[balanceMapServices].MaxEntries = uint32(max(1, len(op.Services)))
		return nil
	}, nil)
	for _, s := range op.Services {
		l.put(balanceMapServices, s.Virtual, balanceAddress{Word: words(s.Virtual)}, balanceAddress{Word: words(s.Backend)})
	}
	l.attach(balanceProgLeave, device, ebpf.AttachTCXEgress, nil)
	l.attach(balanceProgEnter, device, ebpf.AttachTCXIngress, nil)
	return l.done()
}

// Guard attaches the programs of a policy. It is called inside the guarded namespace; number finds a device there. Its error
// is an *testbed.UnsupportedError where this can't be had.
func Guard(op network.Guard, number func(device string) (int, error)) (*Attached, error) {
	l := load(loadGuard, func(spec *ebpf.CollectionSpec) error {
		spec.Maps[guardMapSources].MaxEntries = uint32(max(1, len(op.Entries)))
		return nil
	}, number)
	for _, e := range op.Entries {
		accept, known := map[network.Verdict]uint32{network.Accept: 1, network.Drop: 0}[e.Do]
		if !known && l.err == nil {
			l.err = fmt.Errorf("a guard can't do verdict %d", e.Do)
		}
		key := guardPrefix{Bits: bits(e.From)}
		key.Address.Word = words(e.From.Addr())
		l.put(guardMapSources, e.From, key, accept)
	}
	for _, device := range op.Devices {
		// Before addresses are translated: the table knows the pods' own.
		l.attach(guardProgGuard, l.device(device), ebpf.AttachTCXIngress, link.Head())
	}
	return l.done()
}

// Redirect attaches the programs of a redirection. It is called inside the node's namespace; number finds a device there. Its
// error is an *testbed.UnsupportedError where this can't be had.
func Redirect(op network.Redirection, number func(device string) (int, error)) (*Attached, error) {
	entry, err := number(op.Entry)
	if err != nil {
		return nil, err
	}
	l := load(loadRedirect, func(spec *ebpf.CollectionSpec) error {
		if !op.Tunnel {
			return nil
		}
		return errors.Join(
			spec.Variables[redirectVarTunnel].Set(uint32(entry)), spec.Variables[redirectVarTunnelId].Set(op.TunnelID),
			spec.Variables[redirectVarNear].Set(redirectAddress{Word: words(op.Near)}))
	}, number)
	for _, f := range op.Far {
		key := redirectPrefix{Bits: bits(f.Pods), Address: redirectAddress{Word: words(f.Pods.Addr())}}
		l.put(redirectMapFar, f.Pods, key, redirectAddress{Word: words(f.Node)})
	}
	for _, p := range op.Pods {
		end := l.device(p.NodeEnd)
		l.put(redirectMapPods, p.Address, redirectAddress{Word: words(p.Address)}, redirectPod{NodeEnd: uint32(end), Mac: p.MAC, Gateway: p.Gateway})
		l.attach(redirectProgFromPod, end, ebpf.AttachTCXIngress, nil)
	}
	l.attach(redirectProgFromOutside, entry, ebpf.AttachTCXIngress, nil)
	return l.done()
}

// Joining are the programs that join sockets of the processes in a control group.
type Joining struct {
	tables   *loader
	programs Attached
}

// JoinSockets attaches the programs to a control group of version 2, by its folder. Its error is an *testbed.UnsupportedError where
// this can't be had.
func JoinSockets(op network.JoinSockets, group string) (*Joining, error) {
	l := load(loadSockets, nil, nil)
	for _, p := range op.Pods {
		l.put(socketsMapNodes, p.Address, socketsAddress{Word: words(p.Address)}, uint32(p.Node))
	}
	j := &Joining{tables: l}
	if l.err == nil {
		l.err = j.attach(group)
	}
	_, err := l.done()
	return j, err
}

func (j *Joining) attach(group string) error {
	sockets := link.RawAttachProgramOptions{
		Target: j.tables.maps[socketsMapSockets].FD(), Program: j.tables.programs[socketsProgSent], Attach: ebpf.AttachSkMsgVerdict,
	}
	if err := link.RawAttachProgram(sockets); err != nil {
		return refusal("attach an eBPF program to a table of sockets", err)
	}
	l, err := link.AttachCgroup(link.CgroupOptions{
		Path: group, Attach: ebpf.AttachCGroupSockOps, Program: j.tables.programs[socketsProgEstablished],
	})
	if err != nil {
		return refusal("attach an eBPF program to a control group", err)
	}
	j.programs.hold(l)
	return nil
}

// End has no further socket joined, and those that are go over to TCP with their next message. What a socket has not read
// yet it can read still: so the tables stay until Close.
func (j *Joining) End() error {
	if err := j.tables.variables[socketsVarOver].Set(uint32(1)); err != nil {
		return fmt.Errorf("end joining sockets: %w", err)
	}
	return j.programs.Close()
}

// Close takes all away; it may be called twice. Sockets that are joined still may lose bytes: their processes have to end first.
func (j *Joining) Close() error {
	if err := j.programs.Close(); err != nil {
		return err
	}
	return j.tables.Close()
}

// XDP is the programs of a redirection in the drivers' receive path. Close takes them away.
type XDP struct{ *loader }

// RedirectXDP loads the programs of a redirection and attaches the node's own. It is called inside the node's namespace;
// number finds a device there. Its error is an *testbed.UnsupportedError where this can't be had.
func RedirectXDP(op network.XDPRedirection, number func(device string) (int, error)) (*XDP, error) {
	x := &XDP{load(loadXdp, nil, number)}
	port := x.device(op.Port)
	devices := []int{port}
	for _, f := range op.Far {
		x.put(xdpMapWays, f.Address, xdpAddress{Word: words(f.Address)}, xdpWay{Device: uint32(port), To: f.Port, From: op.PortMAC})
	}
	for _, p := range op.Pods {
		end := x.device(p.NodeEnd)
		devices = append(devices, end)
		x.put(xdpMapWays, p.Address, xdpAddress{Word: words(p.Address)}, xdpWay{Device: uint32(end), To: p.MAC, From: p.Gateway})
	}
	for _, i := range devices {
		if x.err != nil {
			break
		}
		if err := x.maps[xdpMapDevices].Put(uint32(i), uint32(i)); err != nil {
			x.err = refusal("enter a device into a table of devices", err)
		}
		x.attach(xdpProgForward, i)
	}
	_, err := x.done()
	return x, err
}

// Receive lets a device take redirected packets. It is called inside the device's namespace.
func (x *XDP) Receive(device int) error {
	x.attach(xdpProgReceive, device)
	return x.err
}

// attach puts a program into a driver's receive path; the stack's generic one, which any device has, would be another network.
func (x *XDP) attach(program string, device int) {
	if x.err != nil {
		return
	}
	l, err := link.AttachXDP(link.XDPOptions{Interface: device, Program: x.programs[program], Flags: link.XDPDriverMode})
	x.attached("attach an eBPF program to a driver", l, err)
}
