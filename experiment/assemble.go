package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"netdelta/experiment/measure"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/internal/softirq"
	"netdelta/network"
	"netdelta/probe/cpu"
	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// Assemble makes the configuration of a run of the study from its plan. Its agents are this same program, which the provider brings
// to other machines. The caller adds the folder and who is told of progress, and should confine this process to Config.Program.CPUs.
func Assemble(ctx context.Context, s *study.Study, p Plan, driver testbed.Provider, workloads []workload.Workload) (Config, error) {
	self, err := os.Executable()
	if err != nil {
		return Config{}, fmt.Errorf("finding this program, which the agents are: %w", err)
	}
	able := driver.Capabilities()
	c := assembled(s, p, driver, workloads)
	c.Program.Path = cmp.Or(able.Program, self)
	if able.SharesMachine {
		c.Program.Patience, c.Overtime = patience(s.Design.TimeBudget), overtime(s.Design.TimeBudget)
	} else if !p.Blocks && len(s.Changes) == 0 { // whose visits take as long as what they wait for
		c.Overtime = overtimeElsewhere(s.Design.TimeBudget)
	}
	if able.PinsCPUs {
		err = c.useMachine()
	} else {
		c.Run.Environment = result.Environment{Netdelta: machine.Version(), GoVersion: runtime.Version(), Measuring: []int{}, Controlling: []int{}}
		c.Kernel = cpu.Elsewhere()
	}
	if err != nil || able.Describe == nil {
		return c, err
	}
	about, notes, err := able.Describe(ctx, c.Run.Environment)
	if err != nil {
		return Config{}, errors.Join(err, c.Close())
	}
	if about.Cluster != nil {
		about = summed(about)
	}
	c.Run.Environment, c.Run.Notes = about, append(c.Run.Notes, notes...)
	return c, nil
}

// useMachine divides this machine's processors between the workloads and this program, and describes and watches the machine.
func (c *Config) useMachine() error {
	measuring, controlling, err := shareCPUs(c.Run.Cells)
	if err != nil {
		return err
	}
	about, err := machine.Describe(machine.Version())
	if err != nil {
		return err
	}
	about.Measuring, about.Controlling = measuring, controlling
	accounting, err := softirq.Find(measuring[0])
	if err != nil {
		return err
	}
	about.SoftirqTime = string(accounting)
	if c.Machine, err = pressure.NewReader("/proc", measuring); err != nil {
		return err
	}
	if c.Kernel, err = cpu.OpenKernel("/proc", accounting); err != nil {
		return errors.Join(err, c.Machine.Close())
	}
	c.Run.Environment, c.Program.CPUs, c.Measuring = about, controlling, measuring
	return nil
}

// Close closes the configuration's readers of the machine, for a run that does not begin: Run closes them itself.
func (c *Config) Close() error {
	var err error
	if c.Machine != nil {
		err = c.Machine.Close()
	}
	return errors.Join(err, c.Kernel.Close())
}

// assembled is the part of a configuration that is the same wherever the pods run.
func assembled(s *study.Study, p Plan, driver testbed.Provider, workloads []workload.Workload) Config {
	return Config{
		Run: result.Run{
			Schema: result.Schema, Run: s.Name, Study: s.Name, Question: s.Question, Testbed: s.Testbed.Kind,
			Seed: s.Design.Seed, Confidence: s.Design.Confidence, Margin: s.Design.Margin,
			Notes: p.Notes, Cells: p.Cells, Claims: study.Untested(s.Claims), Goals: study.Unjudged(s.Goals),
		},
		Rules: p.Rules, Costs: p.Costs, Admits: p.Admits,
		Blocks: p.Blocks,
		Config: measure.Config{
			Testbed: testbed.Spec{Nodes: max(p.nodes(s, driver.Capabilities()), p.peers().Nodes()), PodsPerNode: s.Testbed.Pods, Link: testbed.Link(s.Testbed.Link), Peers: p.peers(), Via: s.Testbed.Via},
			Driver:  driver, Changes: s.StateChanges(), Asked: s.Asked, Workloads: workloads, Burst: s.Design.Burst, VisitBursts: s.Design.Rounds,
			Pins: s.Testbed.CPU,
		},
	}
}

// shareCPUs divides the processors: workloads get the last one, or the last two when some cell asks for two, and this
// program the others. With too few processors it has to share.
func shareCPUs(cells []result.Cell) (measuring, controlling []int, err error) {
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		return nil, nil, err
	}
	wanted := 1
	if slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Params.CPU == "two" }) {
		wanted = 2
	}
	first := max(0, len(cpus)-wanted)
	measuring = slices.Clone(cpus[first:])
	slices.Reverse(measuring)
	if controlling = cpus[:first]; len(controlling) == 0 {
		controlling = cpus[:1]
	}
	return measuring, controlling, nil
}

// onNodes describes a run that was measured on other machines: those that agents have seen. Of the nodes of a cluster, which are described in
// place of this machine, what the cluster says is kept, and what only a node's own kernel can say is added.
func onNodes(e result.Environment, seen map[string]result.Environment) result.Environment {
	if len(seen) == 0 {
		return e // nothing was measured there: the cluster is as it says of itself
	}
	// A lab's part on a node has names of its own.
	seen = maps.Clone(seen)
	for i, s := range e.Servers {
		own := network.InNode(i).String()
		if is, there := seen[own]; there {
			delete(seen, own)
			seen[s.Name] = is
		}
	}
	e.Findings = append(slices.Clip(e.Findings), findingsOn(seen)...)
	if e.Cluster == nil {
		if len(e.Servers) == 0 { // guests, of which their provider knows less than they do
			is := seen[slices.Min(slices.Collect(maps.Keys(seen)))]
			e.Kernel, e.Arch, e.OS, e.Boot, e.CPU, e.Memory, e.Clock = is.Kernel, is.Arch, is.OS, is.Boot, is.CPU, is.Memory, is.Clock
		}
		return e
	}
	about := *e.Cluster
	told := map[string]result.ClusterNode{}
	for _, n := range about.Nodes {
		told[n.Name] = n
	}
	about.Nodes = nil
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		is, n := seen[name], told[name]
		n.Name = name
		n.Kernel, n.Arch, n.CPU, n.Memory = is.Kernel, is.Arch, is.CPU, is.Memory
		n.Virtual, n.Clock = is.Virtual, is.Clock
		about.Nodes = append(about.Nodes, n)
	}
	e.Cluster = &about
	return summed(e)
}

// findingsOn are what the doctor finds on machines that could be better, each once with the names of its machines.
func findingsOn(seen map[string]result.Environment) (all []result.Finding) {
	on := map[result.Finding][]string{}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		for _, f := range machine.Settings(seen[name]) {
			if f.Fix != "" && on[f] == nil {
				all = append(all, f)
			}
			on[f] = append(on[f], name)
		}
	}
	for i, f := range all {
		if names := on[f]; len(names) == len(seen) && len(names) > 1 {
			all[i].Topic += " on all nodes"
		} else {
			all[i].Topic += " on " + strings.Join(names, ", ")
		}
	}
	return all
}

// interruptNotes say which processors of servers took their cards' interrupts, and whether the study gave one of these to a workload: the
// client is on the first server, and its server on the second.
func interruptNotes(servers []result.Server, pins *result.Pins) (notes []string) {
	for i, s := range servers {
		var parts []string
		total := uint64(0)
		for cpu, n := range s.InterruptCounts {
			if n > 0 {
				parts = append(parts, fmt.Sprintf("%s on CPU %d", unit.Thousands(n), cpu))
				total += n
			}
		}
		if total == 0 {
			continue
		}
		note := fmt.Sprintf("interrupts of the cards of %s while it was measured: %s", s.Name, strings.Join(parts, ", "))
		if pins != nil && i < 2 {
			end, cpu := "client", pins.Client
			if i == 1 {
				end, cpu = "server", pins.Server
			}
			if cpu < len(s.InterruptCounts) && float64(s.InterruptCounts[cpu]) >= pinnedShare*float64(total) {
				note += fmt.Sprintf("; the %s ran on CPU %d and was held up by them: give it another by testbed.cpu, or lead them elsewhere by /proc/irq/N/smp_affinity_list", end, cpu)
			}
		}
		notes = append(notes, note)
	}
	return notes
}

// pinnedShare is which part of its cards' interrupts a workload's processor may take without a word.
const pinnedShare = 0.05

// summed fills in what an environment has of one machine with what all nodes have alike, or with each of what they differ in.
func summed(e result.Environment) result.Environment {
	nodes := e.Cluster.Nodes
	texts := func(of func(result.ClusterNode) string) string {
		var all []string
		for _, n := range nodes {
			if t := of(n); t != "" && !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
		return strings.Join(all, ", ")
	}
	e.Kernel = texts(func(n result.ClusterNode) string { return n.Kernel })
	e.Arch = texts(func(n result.ClusterNode) string { return n.Arch })
	e.OS = texts(func(n result.ClusterNode) string { return n.OS })
	e.Virtual = texts(func(n result.ClusterNode) string { return n.Virtual })
	e.Clock = texts(func(n result.ClusterNode) string { return n.Clock })
	e.CPU = result.CPU{
		Model:       texts(func(n result.ClusterNode) string { return n.CPU.Model }),
		Governor:    texts(func(n result.ClusterNode) string { return n.CPU.Governor }),
		Mitigations: texts(func(n result.ClusterNode) string { return n.CPU.Mitigations }),
		Count:       least(nodes, func(n result.ClusterNode) int { return n.CPU.Count }),
	}
	e.Boot = "" // this machine's, which was not measured
	e.Memory = least(nodes, func(n result.ClusterNode) unit.Bytes { return n.Memory })
	return e
}

// least is the smallest that a node has of something.
func least[T cmp.Ordered](nodes []result.ClusterNode, of func(result.ClusterNode) T) T {
	var smallest, zero T
	for _, n := range nodes {
		if v := of(n); smallest == zero || v != zero && v < smallest {
			smallest = v
		}
	}
	return smallest
}
