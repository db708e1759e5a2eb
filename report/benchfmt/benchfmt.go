// Package benchfmt writes a run in the Go benchmark format, which benchstat and its kin read
// (https://go.dev/design/14313-benchmark-format): a line for each trial, so that builds are the replications.
//
// What the format can't say is that the trials of one build belong together. Tools that read it hold cells against each other
// as if they had been measured apart, and their intervals are wider, or wrong, where the machine drifted during the run.
package benchfmt

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/unit"
)

// Write writes the trials of a run that count: those that neither failed nor were misrouted.
//
// The environment stands first as configuration, which benchstat groups by: what differs between two files keeps their results
// in tables of their own. So nothing is in it that differs between any two runs, as their names and times do; those are in
// a comment.
func Write(w io.Writer, run result.Run, trials result.Trials) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# %s, study %s, %s\n", plain(run.Run), plain(run.Study), run.Started.UTC().Format("2006-01-02 15:04:05 UTC"))
	for _, c := range configuration(run) {
		if c.value != "" {
			fmt.Fprintf(out, "%s: %s\n", c.key, c.value)
		}
	}
	cells := map[string]result.Cell{}
	for _, c := range run.Cells {
		cells[c.ID] = c
	}
	units := map[string]bool{}
	var lines []string
	for t := range result.Each(trials) {
		cell, known := cells[t.Cell]
		figures := insight.Figures(*t)
		if !known || len(figures) == 0 {
			continue
		}
		for _, f := range figures {
			if name := unitOf(f); !units[name] {
				units[name] = true
				fmt.Fprintf(out, "Unit %s better=%s\n", name, f.Better)
			}
		}
		lines = append(lines, line(name(cell, run.Environment.CPU.Count), *t, figures))
	}
	out.WriteByte('\n')
	for _, l := range lines {
		out.WriteString(l)
	}
	return out.Flush()
}

// setting is a line of the configuration.
type setting struct{ key, value string }

// configuration is what must be alike for results to be comparable. Keys begin with a lower-case letter and have neither
// capitals nor spaces.
func configuration(run result.Run) []setting {
	e := run.Environment
	all := []setting{
		{"goos", "linux"}, {"goarch", goarch(e.Arch)}, {"cpu", plain(e.CPU.Model)}, {"cpus", strconv.Itoa(e.CPU.Count)},
		{"kernel", plain(e.Kernel)}, {"os", plain(e.OS)}, {"hypervisor", plain(e.Virtual)}, {"netdelta", plain(e.Netdelta)},
		{"testbed", plain(run.Testbed)},
	}
	for _, name := range slices.Sorted(maps.Keys(e.Sysctls)) {
		if key := sysctl(name); key != "" {
			all = append(all, setting{key, plain(e.Sysctls[name])})
		}
	}
	return all
}

// goarch is Go's name of a kernel's architecture.
func goarch(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return plain(machine)
}

// sysctl is the name of a kernel's setting as a key, "" for one that the kernel can't have.
func sysctl(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLower(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
	}
	if name == "" || !unicode.IsLower([]rune(name)[0]) || strings.ContainsFunc(name, odd) {
		return ""
	}
	return name
}

// plain is text on one line.
func plain(text string) string { return strings.TrimSpace(ui.Clean(text)) }

// unitOf is a metric with its unit, as one word: "p50-ns/op". Tools take the letters before the slash for the unit, and scale
// nanoseconds.
func unitOf(f insight.Figure) string {
	text := f.Metric + "-" + f.Unit
	if f.Unit == "ns" {
		text += "/op"
	}
	return escape(text, "/")
}

// line is a trial.
func line(name string, t result.Trial, figures []insight.Figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d", name, max(1, t.Transactions, int64(len(t.Bursts.Round))))
	for _, f := range figures {
		fmt.Fprintf(&b, " %s %s", strconv.FormatFloat(f.Value, 'g', 10, 64), unitOf(f))
	}
	b.WriteByte('\n')
	return b.String()
}

// name is the benchmark of a cell: "BenchmarkTcpRR/network=vxlan/placement=cross-node/message=300-2". The number at its end is
// that of the processors.
func name(c result.Cell, processors int) string {
	var b strings.Builder
	b.WriteString("Benchmark" + camel(c.Workload))
	add := func(key, value string) {
		if value != "" {
			b.WriteString("/" + key + "=" + escape(value, ""))
		}
	}
	add("network", c.Network)
	if c.Path != "pod" {
		add("path", c.Path)
	}
	add("placement", string(c.Placement))
	for _, d := range result.Recorded(result.Parameters(c.Params.Own.Declared()...)) {
		if c.Params.Given(d) {
			add(parameter(d.Key), value(c.Params.Get(d)))
		}
	}
	for _, l := range c.Params.Conditions.Levels() {
		add(l.Factor, l.Value)
	}
	if c.Role == result.RoleControl {
		add("role", "twin")
	}
	return b.String() + "-" + strconv.Itoa(max(1, processors))
}

// parameter is a parameter's name: shorter ones for some.
func parameter(key string) string {
	short := map[string]string{"request_rate": "requests", "busy_poll": "busypoll", "congestion_control": "cc", "storage_class": "class"}
	return cmp.Or(short[key], key)
}

// value is a level in base units.
func value(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return "yes"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case unit.BitsPerSecond:
		return strconv.FormatFloat(float64(v), 'f', -1, 64)
	}
	return fmt.Sprintf("%d", v) // counts, bytes, nanoseconds
}

// camel makes a benchmark's name of a workload's: "tcp-rr" is "TcpRR", "udp-stream" is "UdpStream". Short words after the first
// are abbreviations.
func camel(workload string) string {
	var b strings.Builder
	for i, word := range strings.Split(escape(workload, ""), "-") {
		switch {
		case word == "":
		case i > 0 && len(word) <= 3:
			b.WriteString(strings.ToUpper(word))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// escape makes text a single part of a name: letters, digits and ._:+,~@- of ASCII stand for themselves, as do the characters in also;
// every other byte is its number, as in a URL.
func escape(text, also string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("._:+,~@-"+also, c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
