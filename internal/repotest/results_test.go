package repotest

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// pageMost is the greatest size of a page of results; what is more is data.
const pageMost = 32_000

// TestResultsAreShort: pages of results can be read, and a page leads to each file of data, which is a table.
func TestResultsAreShort(t *testing.T) {
	pages := ""
	results := files(t, func(p string) bool { return strings.HasPrefix(p, "docs/results/") })
	for _, f := range results {
		if path.Ext(f.path) != ".md" {
			continue
		}
		pages += string(f.text)
		if len(f.text) > pageMost {
			t.Errorf("%s has %d bytes, at most %d: scripts/raw-tables.sh moves its tables into data", f.path, len(f.text), pageMost)
		}
	}
	for _, f := range results {
		if path.Ext(f.path) != ".csv" {
			continue
		}
		rows, err := csv.NewReader(bytes.NewReader(f.text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Errorf("%s is no table: %d rows, error %v", f.path, len(rows), err)
		}
		if !strings.Contains(pages, "("+path.Base(f.path)+")") {
			t.Errorf("no page leads to %s", f.path)
		}
	}
}

// TestRawTables: the first table of a kind stays on a page, and the rows of all are in the data as they were.
func TestRawTables(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	table := func(title, network, change string) string {
		return "### " + title + "\n\nhost: p50 6 µs.\n\n| network | vs host | interval | difference | p50 | verdict | left out |\n| --- | --: | --: | --: | --: | --- | --- |\n" +
			"| " + network + " | " + change + " | +1% to +3% | +1 µs | 7 µs | **slower** |  |\n\n"
	}
	text := "# Results\n\n" + strings.TrimSuffix(table("tcp-rr, 300B, on one node", "bridge", "+2%"), "\n") + "| *demonstrations of a mechanism* |  |  |  |  |  |  |\n\n" +
		"<details><summary>Further settings</summary>\n\n" + table("tcp-rr, 300B, across nodes", "vxlan", "+40%") + "</details>\n\n### Claims\n\n| claim | verdict |\n| --- | --- |\n| a | confirmed |\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/raw-tables.sh"), page).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	short, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(short), "| bridge | +2% |") || strings.Contains(string(short), "vxlan") || !strings.Contains(string(short), "(page.csv)") || !strings.Contains(string(short), "| a | confirmed |") ||
		strings.Count(string(short), "details>") != 2 {
		t.Errorf("the page is now (%v)\n%s", err, short)
	}
	data, err := os.ReadFile(filepath.Join(dir, "page.csv"))
	const want = `setting,network,against,change,interval,difference,metric,value,verdict,left out,about
"tcp-rr, 300B, on one node",bridge,host,+2%,+1% to +3%,+1 µs,p50,7 µs,slower,,host: p50 6 µs.
"tcp-rr, 300B, across nodes",vxlan,host,+40%,+1% to +3%,+1 µs,p50,7 µs,slower,,host: p50 6 µs.
`
	if err != nil || string(data) != want {
		t.Errorf("the data is (%v)\n%s", err, data)
	}
}
