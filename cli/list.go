package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// topic is something that list can list.
type topic struct {
	name, about string
	entries     func(ctx context.Context, env *environment) ([]entry, error)
}

// entry is one of a topic's: as a document of JSON, and as the columns of a line, its name first.
type entry struct {
	document any
	line     []string
	more     []string // columns that -v adds
}

// clusterTopic is the topic of what networks a cluster has; networks lists it, too.
const clusterTopic = "cluster-networks"

func topics() []topic {
	return []topic{
		{"networks", "how pods are attached and reach each other (here: in a lab; vm: with --testbed vm)", networkEntries},
		{clusterTopic, "how pods of a Kubernetes cluster reach each other (--testbed kubernetes)", clusterNetworkEntries},
		{"products", "names that --networks takes for the network that stands in for a product's datapath", productEntries},
		{"workloads", "what runs across a network", workloadEntries},
		{"probes", "what is observed while a workload runs", probeEntries},
		{"studies", "questions that come with netdelta", studyEntries},
		{"testbeds", "what an experiment runs on", testbedEntries},
	}
}

func newListCommand(env *environment) *cobra.Command {
	names := gather.Each(topics(), func(t topic) string { return t.name })
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "list [" + strings.Join(names, "|") + "]",
		Short: "List what netdelta knows, who uses it and where it runs here",
		Example: `  netdelta list
  netdelta list networks
  netdelta list workloads --json`,
		Args:      args(cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, a []string) error {
			var chosen []topic
			for _, t := range topics() {
				if len(a) == 0 || a[0] == t.name || a[0] == "networks" && t.name == clusterTopic {
					chosen = append(chosen, t)
				}
			}
			if asJSON {
				return env.listJSON(cmd.Context(), chosen)
			}
			return env.list(cmd.Context(), chosen, verbose)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "print also how each network works, and what it lacks here")
	return cmd
}

// list prints topics, an empty line between them.
func (env *environment) list(ctx context.Context, chosen []topic, verbose bool) error {
	for i, t := range chosen {
		if i > 0 {
			fmt.Fprintln(env.out)
		}
		if err := t.print(ctx, env, verbose); err != nil {
			return err
		}
	}
	return nil
}

// listJSON prints topics as one object, each a list.
func (env *environment) listJSON(ctx context.Context, chosen []topic) error {
	document := map[string][]any{}
	for _, t := range chosen {
		entries, err := t.entries(ctx, env)
		if err != nil {
			return fmt.Errorf("listing %s: %w", t.name, err)
		}
		for _, e := range entries {
			document[t.name] = append(document[t.name], e.document)
		}
	}
	return writeJSON(env.out, document)
}

// print prints a line for each entry. What a terminal has no columns for is not a table but text behind each name.
func (t topic) print(ctx context.Context, env *environment, verbose bool) error {
	entries, err := t.entries(ctx, env)
	if err != nil {
		return fmt.Errorf("listing %s: %w", t.name, err)
	}
	fmt.Fprintf(env.out, "%s: %s\n", strings.ToUpper(t.name), t.about)
	var rows [][]string
	var table strings.Builder
	w, column := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0), 0
	for _, e := range entries {
		cells := slices.Clone(e.line)
		if verbose {
			cells = append(cells, e.more...)
		}
		for i := range cells {
			cells[i] = ui.Clean(cells[i])
		}
		rows, column = append(rows, cells), max(column, len(cells[0])+4)
		fmt.Fprintln(w, "  "+strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	width := ui.Detect(env.terminal, env.getenv).Width
	return ui.Print(env.out, t.name, func(out ui.Text) {
		if !env.onTerminal() || !slices.ContainsFunc(strings.Split(table.String(), "\n"), func(l string) bool { return ui.Columns(l) > width }) {
			out.Put("%s", table.String())
			return
		}
		for _, cells := range rows {
			hang(out, "  "+cells[0], column, ui.Wrap(strings.Join(cells[1:], " · "), max(width-column, 20)))
		}
	})
}

// workloadEntry is a workload.
type workloadEntry struct {
	Name     string `json:"name"`
	Summary  string `json:"summary"`
	UsedBy   string `json:"used_by"`
	Headline string `json:"headline"`
	// Lacks says which of its programs are not here.
	Lacks string `json:"lacks,omitempty"`
}

// lacking adds to a line which programs are not here.
func lacking(line []string, lacks string) []string {
	if lacks == "" {
		return line
	}
	return append(line, "not found here: "+lacks)
}

func workloadEntries(_ context.Context, env *environment) ([]entry, error) {
	var all []entry
	for _, w := range env.workloads {
		lacks, err := absent(w)
		if err != nil {
			return nil, err
		}
		line := []string{w.Name, w.Summary, w.UsedBy, "headline: " + w.Headline}
		all = append(all, entry{workloadEntry{w.Name, w.Summary, w.UsedBy, w.Headline, lacks}, lacking(line, lacks), nil})
	}
	return all, nil
}

// plainEntry is something with a name, what is to be said of it, and when or where it is there.
type plainEntry struct {
	Name  string `json:"name"`
	About string `json:"about"`
	When  string `json:"when,omitempty"`
}

func (e plainEntry) entry() entry {
	line := []string{e.Name, e.About}
	if e.When != "" {
		line = append(line, e.When)
	}
	return entry{e, line, nil}
}

func probeEntries(context.Context, *environment) ([]entry, error) {
	return []entry{
		plainEntry{"path", "which way the packets of each trial went: counters of all devices, a sample of packets, the path's MTU", "every trial"}.entry(),
		plainEntry{"cpu", "processor time of client, server and kernel, for each transaction and each gigabyte", "every burst"}.entry(),
		plainEntry{"sockets", "TCP_INFO of both ends, what full buffers and listen queues turned away", "every trial"}.entry(),
		plainEntry{"stalls", "times at which nothing got through, or next to nothing", "every trial"}.entry(),
		plainEntry{"config", "what changed in offloads, MTUs, queueing disciplines, rules, routes, sysctls and programs of the lab", "every build"}.entry(),
		plainEntry{"pressure", "processor pressure, steal, throttling, run queue and soft interrupts; preemption", "every round and burst"}.entry(),
	}, nil
}

// studyEntry is a built-in study.
type studyEntry struct {
	Name      string   `json:"name"`
	Question  string   `json:"question"`
	Networks  []string `json:"networks"`
	Workloads []string `json:"workloads"`
	Claims    int      `json:"claims"`
	// Lacks says which programs of its workloads are not here.
	Lacks string `json:"lacks,omitempty"`
}

func studyEntries(_ context.Context, env *environment) ([]entry, error) {
	var all []entry
	for _, f := range studies.All() {
		s, err := study.Parse(f.Path(), f.Data, env.known())
		if err != nil {
			return nil, err
		}
		e := studyEntry{Name: s.Name, Question: s.Question, Networks: s.Networks, Claims: len(s.Claims)}
		var needs []workload.Program
		for _, w := range s.Workloads {
			e.Workloads = gather.Once(e.Workloads, w.Name)
			needs = append(needs, env.needed(s, w)...)
		}
		programs, _, err := workload.Missing(needs)
		if err != nil {
			return nil, err
		}
		slices.Sort(programs)
		e.Lacks = strings.Join(slices.Compact(programs), ", ")
		line := []string{e.Name, e.Question, fmt.Sprintf("%d networks, %d workloads, %d claims", len(e.Networks), len(e.Workloads), e.Claims)}
		all = append(all, entry{e, lacking(line, e.Lacks), nil})
	}
	return all, nil
}

func testbedEntries(context.Context, *environment) ([]entry, error) {
	all := gather.Each(kinds(), func(k kind) entry { return plainEntry{Name: k.name, About: k.about}.entry() })
	return all, nil
}

// networkEntry is a network, and where it runs.
type networkEntry struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	UsedBy  []string `json:"used_by"`
	// Overhead is what encapsulation adds to each packet between nodes, in bytes, by the underlay's version of IP.
	Overhead map[result.Family]int64 `json:"overhead_bytes"`
	// Testbeds says of each testbed whether the network runs on it.
	Testbeds []runsOn `json:"testbeds"`
}

// runsOn says whether a network runs on a testbed.
type runsOn struct {
	Testbed string `json:"testbed"`
	Runs    bool   `json:"runs"`
	// Here says that it takes no guest.
	Here bool `json:"here"`
	// Tried is false where nothing was tried, as in a guest that was never built.
	Tried bool `json:"tried"`
	// Needs is what is missing where the network does not run.
	Needs string `json:"needs,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// where says in few words where the network runs, and why not here where it does not: "vm" and "lab needs ipvlan links".
func (e networkEntry) where() (where, why string) {
	if slices.ContainsFunc(e.Testbeds, func(r runsOn) bool { return r.Runs && r.Here }) {
		return "here", ""
	}
	var needs []string
	for _, r := range e.Testbeds {
		if r.Needs != "" {
			needs = append(needs, r.Testbed+" needs "+r.Needs)
		}
	}
	why = strings.Join(needs, "; ")
	for _, r := range e.Testbeds {
		switch {
		case r.Runs:
			return r.Testbed, why
		case !r.Tried:
			return r.Testbed + ", untried", why
		}
	}
	return "nowhere", why
}

func networkEntries(ctx context.Context, env *environment) ([]entry, error) {
	var all []entry
	guest := env.guestNetworks()
	for _, n := range network.Catalogue() {
		e := networkEntry{Name: n.Name, Summary: n.Summary, UsedBy: n.UsedBy, Overhead: map[result.Family]int64{}}
		for _, family := range []result.Family{result.IPv4, result.IPv6} {
			e.Overhead[family] = 0
			if n.Overhead != nil {
				e.Overhead[family] = int64(n.Overhead(family))
			}
		}
		here := asked(labTestbed, env.lab.Supports(ctx, testbed.Spec{Network: n.Name, Family: result.IPv4}))
		e.Testbeds = []runsOn{here, guest(n.Name)}
		where, why := e.where()
		all = append(all, entry{e, []string{e.Name, where, strings.Join(e.UsedBy, ", ")}, []string{e.Summary, why}})
	}
	return all, nil
}

// asked is a driver's answer to whether it supports a network.
func asked(kind string, err error) runsOn {
	r := runsOn{Testbed: kind, Here: true, Tried: true, Runs: err == nil}
	if err != nil {
		r.Needs, r.Fix, _ = missing(err)
	}
	return r
}

// guestNetworks says which networks run in a guest, as far as that was found out before: nothing is built or booted for a list.
// What keeps it from being found out is the doctor's to say.
func (env *environment) guestNetworks() func(name string) runsOn {
	_, all, err := guestHere()
	return func(name string) runsOn {
		r := runsOn{Testbed: vmTestbed}
		if found, known := ofNetwork(all, name); err == nil && known {
			r.Tried, r.Runs = true, found.OK
			if !found.OK {
				r.Needs, r.Fix = strings.TrimPrefix(found.Says, "needs "), found.Fix
			}
		}
		return r
	}
}
