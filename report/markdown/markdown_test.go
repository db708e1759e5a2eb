package markdown

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/golden"
	"netdelta/internal/property"
	"netdelta/report/reporttest"
	"netdelta/result"
)

// checkGolden compares what is written with the golden file of the name.
func checkGolden(t *testing.T, name string, write func(w io.Writer) error) {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", name+".md"), out.String())
}

// sample is a run with something of everything.
func sample(t *testing.T) result.Run {
	run, _ := reporttest.Usual().Measure(t)
	run.Claims = []result.Claim{{ID: "c", Says: "VXLAN costs most", Source: "a paper", Published: "+50%", Measured: "+31%", Verdict: "confirmed"}}
	run.Advice = []result.Advice{{Says: "Use macvlan.", Why: "It is the closest."}}
	run.Checks = []result.Check{{Trial: "vxlan#1", Check: "path", Expected: "node0/eth0", Observed: "node0/eth1"}, {Trial: "vxlan#2", Check: "path", OK: true}}
	run.Notes = []string{"24 of 160 cells fit the budget"}
	ipip, skipped := run.Cells[2], run.Cells[2]
	ipip.Network, ipip.Unsupported = "ipip", "needs ipip (CONFIG_NET_IPIP)"
	skipped.Params.Message, skipped.Skipped = 2048, "left out by the time budget"
	run.Cells = append(run.Cells, ipip, skipped)
	return run
}

func TestGolden(t *testing.T) {
	lossy := reporttest.Usual()
	lossy.Datagrams, lossy.Builds = true, 2
	few, _ := lossy.Measure(t)
	spoiled, _ := reporttest.Spoiled(t)
	guarded, _ := reporttest.Guarded().Measure(t)
	for name, run := range map[string]result.Run{"effects": guarded, "run": sample(t), "few-builds": few, "empty": {Study: "latency"}, "hostile": spoiled} {
		checkGolden(t, name, func(w io.Writer) error { return Write(w, run) })
	}
	for name, c := range reporttest.Comparisons(t) {
		checkGolden(t, "compare-"+name, func(w io.Writer) error { return WriteComparison(w, c) })
	}
}

// plain takes away what is meant as Markdown or HTML by this package itself.
func plain(text string) string {
	text = regexp.MustCompile(`<details><summary>[^<]*</summary>`).ReplaceAllString(text, "")
	for _, own := range []string{"</details>", `\\`} {
		text = strings.ReplaceAll(text, own, "")
	}
	text = strings.ReplaceAll(text, "@<!-- -->", "(at)")
	return text
}

// No tag, link, code or cell of a hostile name is one, no user is notified, and no line is torn.
func TestHostileNames(t *testing.T) {
	spoiled, _ := reporttest.Spoiled(t)
	var out bytes.Buffer
	if err := errors.Join(Write(&out, spoiled), WriteComparison(&out, reporttest.Comparisons(t)["hostile"])); err != nil {
		t.Fatal(err)
	}
	text := plain(out.String())
	if !strings.Contains(text, "script") {
		t.Fatal("the hostile name is not in the text")
	}
	for what, bad := range map[string]string{
		"a tag": `<`, "code": "(^|[^\\\\])`", "a link": `(^|[^\\])\]\(`, "a mention": `@all`, "an escape": "[\x1b\x07\u202e]",
		"a nested list": `(?m)^- [-+*] `, "a numbered list": `(?m)^- \d+\. `, "a heading's underline": `(?m)^=+`,
	} {
		if found := regexp.MustCompile(bad).FindStringIndex(text); found != nil {
			t.Errorf("%s in the text: …%q…", what, text[max(0, found[0]-30):min(len(text), found[1]+30)])
		}
	}
	columns := 0
	for line := range strings.Lines(text) {
		bars := strings.Count(line, "|") - strings.Count(line, `\|`)
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = 0
		case columns == 0:
			columns = bars
		case bars != columns:
			t.Errorf("a row of %d bars in a table of %d: %s", bars, columns, line)
		}
	}
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"vxlan": "vxlan", "": "", "a|b": `a\|b`, "<b>": "&lt;b&gt;", "a&b": "a&amp;b", "*x*_y_": `\*x\*\_y\_`, "`x`": "\\`x\\`", "[l](u)": `\[l\](u)`,
		"# h": `\# h`, "- i": `\- i`, "+ i": `\+ i`, "=== ": `\=== `, "1. i": `1\. i`, "12) i": `12\) i`, "1.5": "1.5", "6.18": "6.18", "@me": "@<!-- -->me",
		`\`: `\\`, "a\nb": "a b", "  x": "x", "![i](u)": `\!\[i\](u)`, "~~x~~": `\~\~x\~\~`, "$x$": `\$x\$`, "\x1b[31m": `?\[31m`,
	} {
		if got := escape(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
}

// Whatever a name is, it stays in its line and its cell, and holds no tag.
func TestAnyNameStaysInItsCell(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		text := escape(rapid.String().Draw(r, "name"))
		text = strings.ReplaceAll(strings.ReplaceAll(text, "<!-- -->", ""), `\\`, "")
		if strings.ContainsAny(text, "<>\n\r") || strings.Count(text, "|") != strings.Count(text, `\|`) {
			r.Fatalf("%q", text)
		}
	})
}

func TestErrorsOfTheWriter(t *testing.T) {
	if err := Write(reporttest.Full{}, sample(t)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if err := WriteComparison(reporttest.Full{}, reporttest.Comparisons(t)["all"]); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}

// TestRestIsFolded: of a run with further settings and conditions, a reader sees one table for each placement of the load that the run is about.
func TestRestIsFolded(t *testing.T) {
	run, _ := reporttest.Guarded().Measure(t)
	var out bytes.Buffer
	if err := Write(&out, run); err != nil {
		t.Fatal(err)
	}
	var seen []string
	depth := 0
	for line := range strings.Lines(out.String()) {
		depth += strings.Count(line, "<details>") - strings.Count(line, "</details>")
		if depth == 0 && strings.HasPrefix(line, "| ---") {
			seen = append(seen, line)
		}
	}
	if tables := strings.Count(out.String(), "\n| ---"); len(seen) != 1 || tables < 4 || depth != 0 {
		t.Errorf("%d of %d tables are not folded, want one", len(seen), tables)
	}
}
