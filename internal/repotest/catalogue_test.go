package repotest

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// rowsOf are the rows of a document's tables whose first cell is in backticks, by it, each with its cells.
func rowsOf(t *testing.T, document string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(root + "/" + document)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		if len(cells) < 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[strings.Trim(cells[0], "`")] = cells
	}
	return rows
}

// TestNetworksAreDocumented: docs/networks.md has a row for each network of the catalogue, with its overhead, and none for
// another.
func TestNetworksAreDocumented(t *testing.T) {
	rows := rowsOf(t, "docs/networks.md")
	for _, n := range network.Catalogue() {
		row, found := rows[n.Name]
		if !found {
			t.Errorf("docs/networks.md has no row for %s", n.Name)
			continue
		}
		delete(rows, n.Name)
		want := "0/0"
		if n.Overhead != nil {
			want = fmt.Sprintf("%d/%d", n.Overhead(result.IPv4), n.Overhead(result.IPv6))
		}
		if len(row) < 4 || row[3] != want {
			t.Errorf("docs/networks.md says of %s: %q; its overhead is %s", n.Name, row, want)
		}
	}
	delete(rows, network.CNIPrefix+"FILE")
	for name := range rows {
		t.Errorf("docs/networks.md has a row for %s, which is no network", name)
	}
}

// testNames are the names of all tests.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, f := range files(t, func(p string) bool { return strings.HasSuffix(p, "_test.go") }) {
		for _, m := range declared.FindAllStringSubmatch(string(f.text), -1) {
			tests[m[1]] = true
		}
	}
	return tests
}

// TestConditionsAreDocumented: docs/conditions.md has a row for each condition that a study can have, with tests that exist.
func TestConditionsAreDocumented(t *testing.T) {
	var schema struct {
		Defs struct {
			Levels struct {
				Properties map[string]any `json:"properties"`
			} `json:"levels"`
		} `json:"$defs"`
	}
	text, err := os.ReadFile(root + "/schema/study.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(t, "docs/conditions.md")
	if row, found := rows["offload.tso`, `.gso`, `.gro`, `.lro"]; found { // one row for all four
		for _, which := range []string{"tso", "gso", "gro", "lro"} {
			rows["offload."+which] = row
		}
	}
	var ofWorkloads []string // in docs/workloads.md; mtu and busy_poll are documented as conditions
	for _, d := range result.Parameters(workload.Parameters(catalogue.Workloads())...) {
		if !strings.HasPrefix(d.Field, "Conditions.") && d.Key != "mtu" && d.Key != "busy_poll" {
			ofWorkloads = append(ofWorkloads, d.Key)
		}
	}
	tests := testNames(t)
	named := regexp.MustCompile("`(Test\\w+)`")
	for key := range schema.Defs.Levels.Properties {
		row, found := rows[key]
		switch {
		case slices.Contains(ofWorkloads, key):
			continue
		case !found:
			t.Errorf("docs/conditions.md has no row for %s", key)
			continue
		}
		for _, m := range named.FindAllStringSubmatch(row[len(row)-1], -1) {
			if !tests[m[1]] {
				t.Errorf("docs/conditions.md names the test %s of %s, which is nowhere", m[1], key)
			}
		}
	}
}
