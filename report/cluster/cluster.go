// Package cluster is what the doctor found in a cluster, as text and as JSON.
package cluster

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf16"

	"netdelta/internal/gather"
	"netdelta/report/ui"
	"netdelta/testbed/kube/survey"
)

// harmless writes JSON that a terminal does not obey: control characters beyond those that JSON escapes anyway, and characters
// that are not seen, are escaped as well. What it says is the same.
type harmless struct{ to io.Writer }

func (h harmless) Write(text []byte) (int, error) {
	var b strings.Builder
	for _, r := range string(text) {
		if r != '\n' && ui.Unseen(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		b.WriteRune(r)
	}
	if _, err := io.WriteString(h.to, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Document is what was found in a cluster, as JSON.
type Document struct {
	Survey   survey.Survey    `json:"survey"`
	Findings []survey.Finding `json:"findings"`
}

// WriteJSON writes the document.
func WriteJSON(w io.Writer, d Document) error {
	enc := json.NewEncoder(harmless{w})
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// page prints what was found in a cluster. All that the cluster says is cleaned.
type page struct {
	out      *bufio.Writer
	terminal ui.Terminal
}

// WriteText prints what was found, for a terminal.
func WriteText(w io.Writer, d Document, terminal ui.Terminal) error {
	out := bufio.NewWriter(w)
	p := page{out, terminal}
	p.head(d.Survey)
	p.nodes(d.Survey)
	p.network(d.Survey)
	p.rights(d.Survey)
	p.pods(d.Survey)
	p.findings(d.Findings)
	return out.Flush()
}

// title prints the title of a part.
func (p page) title(text string) {
	fmt.Fprintf(p.out, "%s\n", p.terminal.Paint(ui.Bold, p.terminal.Text(text)))
}

// table prints rows below each other, indented. No cell can break out of its place.
func (p page) table(rows [][]string) {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := gather.Each(row, p.terminal.Text)
		_, _ = fmt.Fprintf(w, "  %s\n", strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	_ = w.Flush() // p.out keeps its first error
	fmt.Fprintln(p.out)
}

func (p page) head(s survey.Survey) {
	level := cmp.Or(s.Namespace.Level, "not set")
	p.title("CLUSTER " + s.Cluster + ": Kubernetes " + s.Version)
	about := "(Pod Security: " + level + ")"
	if s.Namespace.Missing {
		about = "(which is not there)"
	}
	fmt.Fprintf(p.out, "  %s\n\n", p.terminal.Text(fmt.Sprintf("as %s, in namespace %s %s", known(s.User.Name), s.Namespace.Name, about)))
}

func (p page) nodes(s survey.Survey) {
	if len(s.Nodes) == 0 {
		return
	}
	p.title("NODES")
	rows := [][]string{{"name", "state", "kubelet", "kernel", "zone", "processors", "free", "clock"}}
	for _, n := range s.Nodes {
		state := "open to pods"
		switch {
		case !n.Ready:
			state = "not ready"
		case n.Shut != "":
			state = "closed: " + n.Shut
		}
		free, clock := "not known", "not known"
		if n.FreeMilliCPU >= 0 {
			free = processors(n.FreeMilliCPU)
		}
		if n.Clock != nil {
			clock = n.Clock.String()
		}
		rows = append(rows, []string{n.Name, state, n.Kubelet, n.Kernel, cmp.Or(n.Zone, "-"), processors(n.MilliCPU), free, clock})
	}
	p.table(rows)
}

// processors writes thousandths of them.
func processors(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }

func (p page) network(s survey.Survey) {
	n := s.Network
	p.title("NETWORK")
	plugin := known(n.Plugin)
	if n.Mode != "" {
		plugin += ", " + n.Mode
	}
	rows := [][]string{{"plugin", plugin}, {"between nodes", travels(n)}}
	for i, by := range n.By {
		label := ""
		if i == 0 {
			label = "known by"
		}
		rows = append(rows, []string{label, by})
	}
	if n.Doubt != "" {
		rows = append(rows, []string{"doubt", n.Doubt})
	}
	size := "not known"
	if n.MTU > 0 {
		size = strconv.Itoa(n.MTU)
	}
	services := known(s.Services.Mode)
	if s.Services.By != "" {
		services += " (" + s.Services.By + ")"
	}
	if s.Services.Count >= 0 {
		services += fmt.Sprintf(", %d of them", s.Services.Count)
	}
	if s.Tried > 0 {
		rows = append(rows, []string{"from pod to pod", fmt.Sprintf("%d of %d ways between nodes carry packets of full size", s.Tried-min(len(s.Broken), s.Tried), s.Tried)})
	}
	rows = append(rows, []string{"pods' MTU", size}, []string{"policies", known(n.Policies)}, []string{"eBPF", known(n.EBPF)}, []string{"encryption", known(n.Encryption)},
		[]string{"services", services})
	if s.Secondary.Multus {
		rows = append(rows, []string{"secondary", "Multus"})
	}
	if len(s.Secondary.SRIOV) > 0 {
		rows = append(rows, []string{"SR-IOV", strings.Join(s.Secondary.SRIOV, ", ")})
	}
	p.table(rows)
	p.devices(s)
}

// travels says what packets between nodes travel in.
func travels(n survey.Network) string {
	switch {
	case n.Encapsulation == "":
		return "not known"
	case n.Encapsulation == "none":
		return "packets travel as they are"
	case n.OnlyAcross:
		return "packets travel in " + n.Encapsulation + " between subnets, as they are within one"
	}
	return "packets travel in " + n.Encapsulation
}

// devices prints cards and bonds: what pods' own ends are, the network says.
func (p page) devices(s survey.Survey) {
	if !s.Devices {
		return
	}
	p.title("DEVICES")
	rows := [][]string{{"node", "device", "kind", "MTU", "speed", "bond", "address"}}
	for _, n := range s.Nodes {
		card, _ := n.Card()
		for _, d := range n.Devices {
			if d.Name == "lo" || d.Name != card.Name && d.Kind != "device" && d.Kind != "bond" && !ofTunnel(d.Kind) {
				continue
			}
			speed, bond := "-", "-"
			if d.Speed > 0 {
				speed = d.Speed.String()
			}
			switch {
			case d.Kind == "bond":
				bond = d.BondMode + ", hash " + known(d.HashPolicy)
			case d.Master != "":
				bond = "part of " + d.Master
			}
			address := ""
			if d.Name == card.Name {
				address = "the node's own"
			}
			rows = append(rows, []string{n.Name, d.Name, d.Kind, strconv.Itoa(d.MTU), speed, bond, address})
		}
	}
	p.table(rows)
}

// ofTunnel says whether a kind of device wraps packets.
func ofTunnel(kind string) bool {
	return slices.Contains([]string{"vxlan", "geneve", "ipip", "gre", "wireguard", "tun"}, kind)
}

func (p page) rights(s survey.Survey) {
	if len(s.Rights) == 0 {
		return
	}
	p.title("RIGHTS")
	var rows [][]string
	for i := 0; i < len(s.Rights); {
		first := s.Rights[i]
		mark := "ok"
		var verbs, missing, unknown []string
		for ; i < len(s.Rights); i++ {
			r := s.Rights[i]
			if r.For != first.For || r.Group != first.Group || r.Resource != first.Resource || r.Namespace != first.Namespace {
				break
			}
			verbs = append(verbs, r.Verb)
			switch {
			case r.Unknown != "":
				mark, unknown = "--", append(unknown, r.Verb)
			case !r.Allowed:
				mark, missing = "--", append(missing, r.Verb)
			}
		}
		resource := first.Resource
		if first.Group != "" {
			resource += "." + first.Group
		}
		where := cmp.Or(first.Namespace, "the cluster")
		var says []string
		if len(missing) > 0 {
			says = append(says, "missing: "+strings.Join(missing, " "))
		}
		if len(unknown) > 0 {
			says = append(says, "not known: "+strings.Join(unknown, " "))
		}
		rows = append(rows, []string{mark, string(first.For), resource, strings.Join(verbs, " "), where, strings.Join(says, "; ")})
	}
	p.table(rows)
}

func (p page) pods(s survey.Survey) {
	if len(s.Admission) == 0 {
		return
	}
	p.title("PODS: would the namespace take them?")
	var rows [][]string
	for _, a := range s.Admission {
		mark, says := "ok", "yes"
		switch {
		case a.Untried != "":
			mark, says = "--", "not tried: "+a.Untried
		case !a.Admitted:
			mark, says = "--", "no"
		}
		rows = append(rows, []string{mark, a.Pod, says})
	}
	p.table(rows)
}

// findings prints what the facts mean, each wrapped to the terminal's width.
func (p page) findings(all []survey.Finding) {
	if len(all) == 0 {
		p.title("FINDINGS: none")
		return
	}
	counts := map[survey.Severity]int{}
	for _, f := range all {
		counts[f.Severity]++
	}
	p.title(fmt.Sprintf("FINDINGS: %d missing, %d to be warned of, %d to note", counts[survey.Missing], counts[survey.Warning], counts[survey.Note]))
	colours := map[survey.Severity]ui.Style{survey.Missing: ui.Red, survey.Warning: ui.Yellow, survey.Note: ui.Plain}
	for _, f := range all {
		p.line(p.terminal.Paint(colours[f.Severity], fmt.Sprintf("%-8s", f.Severity)), f.Topic+": "+f.Says)
		if f.Why != "" {
			p.line("        ", "why: "+f.Why)
		}
		if f.Fix != "" {
			p.line("        ", "fix: "+f.Fix)
		}
	}
}

// hanging is how far the text of a finding is from the margin.
const hanging = 12

// line prints text after a label of eight columns, wrapped.
func (p page) line(label, text string) {
	for i, line := range ui.Wrap(p.terminal.Text(text), max(p.terminal.Width-hanging, hanging)) {
		if i > 0 {
			label = "        "
		}
		fmt.Fprintf(p.out, "  %s  %s\n", label, line)
	}
}

// known is text, or says that there is none.
func known(text string) string {
	if strings.TrimSpace(text) == "" {
		return "not known"
	}
	return text
}
