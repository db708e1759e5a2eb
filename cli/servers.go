package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
	"netdelta/testbed/ssh"
)

// serverFlags say how servers are used that are named by --nodes.
type serverFlags struct {
	nic  string
	sudo bool
}

func (s *serverFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.nic, "nic", "", "with --testbed ssh or --what-if, how nodes get their cards: "+servers.Modes)
	f.BoolVar(&s.sudo, "sudo", false, "with --testbed ssh: run as root on the servers by sudo -n")
}

// given is the first of the flags that was given, "" for none.
func (s serverFlags) given() string {
	switch {
	case s.nic != "":
		return "--nic"
	case s.sudo:
		return "--sudo"
	}
	return ""
}

// of leaves to the study what no flag says.
func (s serverFlags) of(st *study.Study) serverFlags {
	s.nic = cmp.Or(s.nic, st.Testbed.NIC)
	return s
}

// options are how the servers that --nodes names are reached.
func (s serverFlags) options(nodes string) (o ssh.Options, err error) {
	if nodes == "" {
		return o, usageError{fmt.Errorf("--testbed ssh needs the servers: --nodes %s[user@]a,%s[user@]b", ssh.Prefix, ssh.Prefix)}
	}
	o.Sudo = s.sudo
	if o.Nodes, err = ssh.ParseNodes(nodes); err != nil {
		return o, usageError{err}
	}
	if len(o.Nodes) > servers.NodesMost {
		return o, usageError{fmt.Errorf("--nodes: %d servers are named, and there can be %d", len(o.Nodes), servers.NodesMost)}
	}
	if o.NIC, err = servers.ParseNIC(s.nic); err != nil {
		return o, usageError{err}
	}
	return o, nil
}

// serversOnly refuses flags of servers on another kind of testbed.
func serversOnly(o runOptions, on kind) error {
	if on.cards {
		return nil // it refuses by itself what it can't use
	}
	if flag := o.servers.given(); flag != "" {
		return usageError{fmt.Errorf("%s goes with --testbed %s; this study runs on testbed %s", flag, sshTestbed, on.name)}
	}
	return nil
}

// checkServers refuses what can't be had on servers.
func checkServers(o runOptions, s *study.Study) error {
	at, err := o.servers.of(s).options(o.nodes)
	switch {
	case err != nil:
		return err
	case o.flame || o.hops || o.explain:
		return usageError{errors.New("--flame, --hops and --explain-outliers look at the kernel of this machine: run netdelta on the server itself for them")}
	case len(at.Nodes) > 1 && s.Testbed.Nodes > len(at.Nodes):
		return usageError{fmt.Errorf("the study has %d nodes, and --nodes names %d servers", s.Testbed.Nodes, len(at.Nodes))}
	}
	return nil
}

// adaptToServers has a study with a target compare where its clients stand: in the servers' own network.
func adaptToServers(s *study.Study, o study.Overrides, _ bool) (note string) {
	return toTarget(s, o, network.Metal)
}

// openServers makes nodes of the servers; closing it gives back what they had.
func openServers(ctx context.Context, _ *environment, s *study.Study, o runOptions) (testbed.Provider, func() error, error) {
	at, err := o.servers.of(s).options(o.nodes)
	if err != nil {
		return nil, nil, err
	}
	if at.Least = s.Testbed.Nodes; at.Least < 2 || len(at.Nodes) <= at.Least { // one server alone would be another testbed
		at.Least = 0
	}
	opened, err := ssh.Open(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	return opened, opened.Close, nil
}

// examineServers is what the doctor finds on servers.
func examineServers(ctx context.Context, env *environment, o doctorOptions) error {
	at, err := o.servers.options(o.nodes)
	if err != nil {
		return err
	}
	var all []finding
	for _, seen := range servers.Look(ctx, at.Machines(), at.NIC) {
		all = append(all, serverFindings(seen, true)...)
	}
	return env.tell(all, o)
}

// serverFindings are the doctor's findings on one server, whose cards may be taken or not.
func serverFindings(seen servers.Seen, taken bool) (all []finding) {
	topic := func(what string) string { return fmt.Sprintf("%s %s", seen.Name, what) }
	if seen.Err != nil {
		return []finding{{Topic: topic("reached"), Says: seen.Err.Error()}}
	}
	r := seen.Report
	if r.OS != "" {
		r.OS += ", "
	}
	all = append(all, finding{Topic: topic("system"), OK: true, Says: fmt.Sprintf("Linux %s %s, %s%d x %s%s%s", r.Kernel, r.Arch, r.OS, r.CPU.Count, r.CPU.Model, servers.Isolated(r.CPU), onVirtual(r.Virtual))})
	if r.CPU.NUMA > 1 {
		all = append(all, finding{Topic: topic("memory"), OK: true, Says: fmt.Sprintf("%d NUMA nodes: a processor far from its card takes longer", r.CPU.NUMA)})
	}
	for _, f := range examineSettings(result.Environment{Clock: r.Clock, CPU: r.CPU}) {
		f.Topic = topic(f.Topic)
		all = append(all, f)
	}
	if r.Rights != "" {
		all = append(all, finding{Topic: topic("rights"), Says: r.Rights, Fix: "name a user who is root, as ssh:root@host, or give --sudo"})
	}
	for _, c := range r.Cards {
		f := finding{Topic: topic("card " + c.Name), OK: c.Up, Says: servers.About(c)}
		mode := func(name, not string) {
			if not == "" {
				f.Says += fmt.Sprintf("; %s:%s works", name, c.Name)
			} else {
				f.Says += fmt.Sprintf("; %s: %s", name, not)
			}
		}
		mode(server.Macvlan, c.NoMacvlan)
		mode(server.IPVlan, c.NoIPVlan)
		if taken {
			mode(server.Take, c.NotTaken)
			if c.Functions > 0 {
				f.Says += fmt.Sprintf("; %s:%s/0 to %d may work", server.VF, c.Name, c.Functions-1)
			} else {
				f.Says += "; vf: it can have no virtual functions"
			}
		}
		if !c.Up && taken {
			f.Fix = "ip link set " + c.Name + " up, or --nic take:" + c.Name
		}
		all = append(all, f)
	}
	for _, w := range seen.Ways {
		all = append(all, wayFinding(w, topic("to "+w.To)))
	}
	for _, n := range r.Networks {
		f := finding{Topic: topic("network " + n.Name), OK: n.Why == "", Says: "its kernel has what it takes"}
		if n.Why != "" {
			f.Says = n.Why
		}
		all = append(all, f)
	}
	return all
}

// wayFinding is what the doctor says of the way to another server.
func wayFinding(w server.Way, topic string) finding {
	switch {
	case w.Why != "":
		return finding{Topic: topic, OK: true, Says: "how large packets can be is not known: " + w.Why}
	case w.MTU < w.Card:
		says, fix := servers.Lost(w.MTU, w.Card)
		return finding{Topic: topic, Says: says, Fix: fix}
	}
	return finding{Topic: topic, OK: true, Says: fmt.Sprintf("packets of %d bytes arrive, the card's MTU", w.MTU)}
}

// cleanServers removes what killed runs left on servers, and says how much it was.
func cleanServers(ctx context.Context, env *environment, o cleanOptions) (found int, err error) {
	at, err := o.servers.options(o.nodes)
	if err != nil {
		return 0, err
	}
	for _, c := range servers.Clean(ctx, at.Machines()) {
		for _, what := range c.Removed {
			fmt.Fprintf(env.out, "%s: removed %s\n", c.Name, ui.Clean(what))
		}
		found, err = found+len(c.Removed), errors.Join(err, c.Err)
	}
	return found, err
}
