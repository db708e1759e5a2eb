package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

// chain holds the rules that lead packets to the queue.
const chain = "NETWORK-POLICY"

// family is a version of IP on this node.
type family struct {
	set     string // of addresses of pods that policies select
	restore string // the program that takes rules
	number  uint8
	has     map[netip.Addr]bool
}

// guard leads the first packets of connections from and to pods that policies select to the queue. It is used by one goroutine.
type guard struct{ families []*family }

// begin makes the rules and empty sets. What an earlier process left is taken over.
func (g *guard) begin() error {
	g.families = []*family{
		{set: "policy-pods", restore: "iptables", number: unix.AF_INET, has: map[netip.Addr]bool{}},
		{set: "policy-pods6", restore: "ip6tables", number: unix.AF_INET6, has: map[netip.Addr]bool{}},
	}
	for _, f := range g.families {
		if err := netlink.IpsetCreate(f.set, "hash:ip", netlink.IpsetCreateOptions{Replace: true, Family: f.number, MaxElements: 65536}); err != nil {
			return fmt.Errorf("make the set %s: %w", f.set, err)
		}
		if err := netlink.IpsetFlush(f.set); err != nil {
			return fmt.Errorf("empty the set %s: %w", f.set, err)
		}
		if err := f.rules(); err != nil {
			return err
		}
	}
	return nil
}

// rules puts the rules in place. A queue without a reader lets packets pass.
func (f *family) rules() error {
	var b strings.Builder
	fmt.Fprintf(&b, "*mangle\n:%s - [0:0]\n", chain)
	for _, direction := range []string{"src", "dst"} {
		fmt.Fprintf(&b, "-A %s -m conntrack --ctstate NEW -m set --match-set %s %s -j NFQUEUE --queue-num %d --queue-bypass\n",
			chain, f.set, direction, queueNumber)
	}
	b.WriteString("COMMIT\n")
	if err := feed(b.String(), f.restore+"-restore", "--noflush", "--wait"); err != nil {
		return err
	}
	if feed("", f.restore, "--wait", "-t", "mangle", "-C", "FORWARD", "-j", chain) == nil {
		return nil
	}
	return feed("", f.restore, "--wait", "-t", "mangle", "-I", "FORWARD", "-j", chain)
}

// sync has the sets name the pods of this node that policies select.
func (g *guard) sync(ctx context.Context, engine *networkpolicy.PolicyEngine) error {
	selected, _, err := engine.GetManagedIPs(ctx)
	if err != nil {
		return err
	}
	for _, f := range g.families {
		want := map[netip.Addr]bool{}
		for _, a := range selected {
			if a.Is4() == (f.number == unix.AF_INET) {
				want[a] = true
			}
		}
		for a := range want {
			if f.has[a] {
				continue
			}
			if err := netlink.IpsetAdd(f.set, &netlink.IPSetEntry{IP: a.AsSlice(), Replace: true}); err != nil {
				return fmt.Errorf("add %s to the set %s: %w", a, f.set, err)
			}
			f.has[a] = true
		}
		for a := range f.has {
			if want[a] {
				continue
			}
			if err := netlink.IpsetDel(f.set, &netlink.IPSetEntry{IP: a.AsSlice()}); err != nil {
				return fmt.Errorf("take %s from the set %s: %w", a, f.set, err)
			}
			delete(f.has, a)
		}
	}
	return nil
}

// end removes the rules and the sets.
func (g *guard) end() error {
	var all error
	for _, f := range g.families {
		all = errors.Join(all,
			feed("", f.restore, "--wait", "-t", "mangle", "-D", "FORWARD", "-j", chain),
			feed("", f.restore, "--wait", "-t", "mangle", "-F", chain),
			feed("", f.restore, "--wait", "-t", "mangle", "-X", chain))
		if err := netlink.IpsetDestroy(f.set); err != nil {
			all = errors.Join(all, fmt.Errorf("remove the set %s: %w", f.set, err))
		}
	}
	return all
}

// feed runs a program with some input.
func feed(input string, program ...string) error {
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strconv.Quote(strings.Join(program, " ")), err, bytes.TrimSpace(out))
	}
	return nil
}
