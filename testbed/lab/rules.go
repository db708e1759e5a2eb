package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// openTables speaks with nftables in the namespace of the file descriptor.
func openTables(fd int) (*nftables.Conn, error) {
	c, err := nftables.New(nftables.WithNetNSFd(fd))
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	return c, nil
}

// newTable is a table of a version of IP.
func newTable(name string, f result.Family) *nftables.Table {
	if f == result.IPv6 {
		return &nftables.Table{Family: nftables.TableFamilyIPv6, Name: name}
	}
	return &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}
}

// translate has a packet's destination translated to an address.
func translate(to netip.Addr) []expr.Any {
	family := uint32(unix.NFPROTO_IPV4)
	if to.Is6() {
		family = unix.NFPROTO_IPV6
	}
	return []expr.Any{&expr.Immediate{Register: 1, Data: to.AsSlice()}, &expr.NAT{Type: expr.NATTypeDestNAT, Family: family, RegAddrMin: 1}}
}

// addRules makes a table in the namespace of the file descriptor, a short one in one transaction.
func addRules(fd int, rules network.Rules) error {
	c, err := openTables(fd)
	if err != nil {
		return err
	}
	table := c.AddTable(newTable(rules.Table, rules.Family))
	hooks := map[network.Hook]*nftables.ChainHook{
		network.Prerouting: nftables.ChainHookPrerouting, network.Input: nftables.ChainHookInput,
		network.Forwarding: nftables.ChainHookForward, network.Postrouting: nftables.ChainHookPostrouting,
	}
	parts := flusher{c: c}
	for _, chain := range rules.Chains {
		hook, known := hooks[chain.Hook]
		if !known {
			return fmt.Errorf("unknown hook %q", chain.Hook)
		}
		policy, kind := nftables.ChainPolicyAccept, nftables.ChainTypeFilter
		if chain.Drop {
			policy = nftables.ChainPolicyDrop
		}
		if chain.NAT {
			kind = nftables.ChainTypeNAT
		}
		made := c.AddChain(&nftables.Chain{
			Name: chain.Name, Table: table, Hooknum: hook, Priority: nftables.ChainPriorityRef(nftables.ChainPriority(chain.Priority)),
			Type: kind, Policy: &policy,
		})
		for _, rule := range chain.Rules {
			exprs, err := ruleExprs(rule)
			if err != nil {
				return fmt.Errorf("rule %q: %w", rule, err)
			}
			c.AddRule(&nftables.Rule{Table: table, Chain: made, Exprs: exprs})
			if err := parts.made(1); err != nil {
				return err
			}
		}
	}
	return c.Flush()
}

// deleteRules removes all tables from the namespace of the file descriptor.
func deleteRules(fd int) error {
	c, err := openTables(fd)
	if err != nil {
		return err
	}
	c.FlushRuleset()
	return c.Flush()
}

// ruleExprs compiles a rule for the kernel's rule machine: each match loads register 1 and compares it.
func ruleExprs(r network.Rule) ([]expr.Any, error) {
	var e []expr.Any
	device := func(name string, key expr.MetaKey, op expr.CmpOp) {
		if name != "" {
			padded := make([]byte, unix.IFNAMSIZ)
			copy(padded, name)
			e = append(e, &expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: padded})
		}
	}
	device(r.In, expr.MetaKeyIIFNAME, expr.CmpOpEq)
	device(r.Out, expr.MetaKeyOIFNAME, expr.CmpOpEq)
	device(r.NotOut, expr.MetaKeyOIFNAME, expr.CmpOpNeq)
	e = append(e, matchPrefix(r.From, false)...)
	e = append(e, matchPrefix(r.To, true)...)
	if r.Protocol != network.AnyProtocol {
		e = append(e,
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{byte(r.Protocol)}},
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Range{
				Op: expr.CmpOpEq, Register: 1,
				FromData: binary.BigEndian.AppendUint16(nil, r.FirstPort), ToData: binary.BigEndian.AppendUint16(nil, r.LastPort),
			})
	} else if r.FirstPort != 0 || r.LastPort != 0 {
		return nil, errors.New("ports need a protocol")
	}
	if r.Established {
		wanted := binary.NativeEndian.AppendUint32(nil, expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED)
		e = append(e,
			&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: wanted, Xor: make([]byte, 4)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)})
	}
	switch r.Do {
	case network.Accept:
		return append(e, &expr.Verdict{Kind: expr.VerdictAccept}), nil
	case network.Drop:
		return append(e, &expr.Verdict{Kind: expr.VerdictDrop}), nil
	case network.Masquerade:
		return append(e, &expr.Masq{}), nil
	case network.TranslateDestination:
		return append(e, translate(r.Destination)...), nil
	}
	return nil, fmt.Errorf("unknown verdict %d", r.Do)
}

// matchPrefix compares the source or the destination in the IP header; a prefix that is not valid matches all.
func matchPrefix(p netip.Prefix, destination bool) []expr.Any {
	if !p.IsValid() {
		return nil
	}
	offset, size := addressField(destination, p.Addr().Is6())
	e := []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size}}
	if p.Bits() < p.Addr().BitLen() {
		mask := net.CIDRMask(p.Bits(), p.Addr().BitLen())
		e = append(e, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: mask, Xor: make([]byte, size)})
	}
	return append(e, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()})
}

// addressField is where an IP header has its source or destination address (RFC 791, RFC 8200).
func addressField(destination, ipv6 bool) (offset, size uint32) {
	offset, size = 12, 4
	if ipv6 {
		offset, size = 8, 16
	}
	if destination {
		offset += size
	}
	return offset, size
}

// restorePatience is how long iptables-restore may take: seconds for ten thousand rules on a slow machine.
const restorePatience = 2 * time.Minute

// restore hands a table to iptables-restore inside a namespace.
func (s *space) restore(op network.IPTables) error {
	path, err := superuserTool(op.Program())
	if err != nil {
		return &testbed.UnsupportedError{
			Feature: "iptables", Need: "the program " + op.Program(), Fix: "install the package iptables",
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), restorePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin = strings.NewReader(op.Text())
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	lock, err := privateLock()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	// It would take a lock of the whole machine for a table that is all our own.
	cmd.ExtraFiles = []*os.File{lock}
	cmd.Env = []string{"PATH=" + superuserPath, "LC_ALL=C", "XTABLES_LOCKFILE=/proc/self/fd/3"}
	var said []byte
	err = s.ns.Do(func() error {
		var err error
		said, err = cmd.CombinedOutput()
		return err
	})
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(said))
	if len(text) > maxSaid {
		text = text[:maxSaid] + "..."
	}
	err = fmt.Errorf("%s: %w: %s", path, err, text)
	switch {
	case says(text, "Permission denied", "you must be root"):
		return errors.Join(unix.EPERM, err)
	case says(text, "missing kernel module", "unable to initialize", "initialize table", "No such file or directory", "not supported", "generation id"):
		return fmt.Errorf("%w: %w", errMissing, err)
	}
	return err
}

// maxSaid is how much of what a program says goes into an error, in bytes.
const maxSaid = 1000

// says tells whether a text holds one of several words.
func says(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// privateLock is a file of this program alone, which is gone when it is closed.
func privateLock() (*os.File, error) {
	fd, err := unix.MemfdCreate("lock", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file for a lock: %w", err)
	}
	return os.NewFile(uintptr(fd), "lock"), nil
}

// superuserPath is where programs for the superuser are, which the PATH of others often lacks.
const superuserPath = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

// superuserTool finds a program on the PATH or where those for the superuser are.
func superuserTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for dir := range strings.SplitSeq(superuserPath, ":") {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// addServiceMap makes a table in the namespace of the file descriptor that resolves virtual addresses: a map from the
// destination to the chain of its service.
func addServiceMap(fd int, op network.ServiceMap) error {
	c, err := openTables(fd)
	if err != nil {
		return err
	}
	key := nftables.TypeIPAddr
	if op.Family == result.IPv6 {
		key = nftables.TypeIP6Addr
	}
	table := c.AddTable(newTable("services", op.Family))
	// An ID is of a transaction alone. One that is given keeps the library from drawing one from a counter that it does not guard.
	set := &nftables.Set{ID: 1, Table: table, Name: "services", IsMap: true, KeyType: key, DataType: nftables.TypeVerdict}
	if err := c.AddSet(set, nil); err != nil {
		return fmt.Errorf("add the map: %w", err)
	}
	parts := flusher{c: c}
	for k, v := range op.Services {
		chain := c.AddChain(&nftables.Chain{Name: "service-" + strconv.Itoa(k), Table: table})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: translate(v.Backend)})
		err := c.SetAddElements(set, []nftables.SetElement{{
			Key: v.Virtual.AsSlice(), VerdictData: &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain.Name},
		}})
		if err != nil {
			return fmt.Errorf("add service %s: %w", v, err)
		}
		const messages = 3
		if err := parts.made(messages); err != nil {
			return err
		}
	}
	// Last, for it makes the others count.
	out := c.AddChain(&nftables.Chain{
		Name: "out", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput,
		Priority: nftables.ChainPriorityNATDest,
	})
	offset, size := addressField(true, op.Family == result.IPv6)
	c.AddRule(&nftables.Rule{Table: table, Chain: out, Exprs: []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: size},
		&expr.Lookup{SourceRegister: 1, DestRegister: 0, IsDestRegSet: true, SetName: set.Name, SetID: set.ID},
	}})
	return c.Flush()
}

// flusher sends messages in parts: the kernel's answers to some hundred at once would not fit a socket's buffer.
type flusher struct {
	c       *nftables.Conn
	waiting int
}

const messagesAtOnce = 120

// made counts messages that wait, and sends them when there are enough.
func (f *flusher) made(count int) error {
	if f.waiting += count; f.waiting < messagesAtOnce {
		return nil
	}
	f.waiting = 0
	return f.c.Flush()
}

// ruledSpaces are the operations that left rules, by the namespaces where they did.
func ruledSpaces(ops []network.Op) map[network.Space][]network.Op {
	all := map[network.Space][]network.Op{}
	for _, op := range ops {
		switch op := op.(type) {
		case network.Rules:
			all[op.In] = append(all[op.In], op)
		case network.IPTables:
			all[op.In] = append(all[op.In], op)
		case network.ServiceMap:
			all[op.In] = append(all[op.In], op)
		case network.IPVS:
			all[op.In] = append(all[op.In], op)
		}
	}
	return all
}

// unrule takes out of a namespace that outlives its network what operations left there, and what the kernel remembers of
// connections whose addresses it translated: in the next network they may lead elsewhere.
func (s *space) unrule(ops []network.Op) error {
	if len(ops) == 0 {
		return nil
	}
	var errs []error
	tables := false
	for _, op := range ops {
		switch op := op.(type) {
		case network.Rules, network.ServiceMap:
			tables = true
		case network.IPTables:
			errs = append(errs, s.restore(op.Cleared()))
		case network.IPVS:
			errs = append(errs, s.ns.WithFD(deleteIPVS))
		default:
			errs = append(errs, fmt.Errorf("%T leaves something in a namespace, and nothing here takes it out", op))
		}
	}
	if tables {
		errs = append(errs, s.ns.WithFD(deleteRules))
	}
	errs = append(errs, s.forgetConnections())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete the firewall rules in %s: %w", s.name, err)
	}
	return nil
}

// forgetConnections empties the table of connections. A kernel that has none, or none to be asked for, remembers nothing.
func (s *space) forgetConnections() error {
	return s.ns.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_NETFILTER)
		if err != nil {
			return fmt.Errorf("open a netlink socket: %w", err)
		}
		defer h.Close()
		if err := h.ConntrackTableFlush(netlink.ConntrackTable); err != nil && !missing(err) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("forget connections: %w", err)
		}
		return nil
	})
}
