package repotest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPromisesAreHeld: docs/reliability.md names tests that exist, and each row of the table of faults.
func TestPromisesAreHeld(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	for _, m := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1) {
		if !tests[m[1]] {
			t.Errorf("docs/reliability.md names the test %s, which is nowhere", m[1])
		}
	}
	table, err := os.ReadFile(root + "/cli/chaos_test.go")
	if err != nil {
		t.Fatal(err)
	}
	promises := strings.Join(strings.Fields(string(text)), " ")
	rows := regexp.MustCompile(`(?m)^\t\t\{"(.*?)", (?:survived|named), `).FindAllStringSubmatch(string(table), -1)
	if len(rows) < 20 {
		t.Errorf("the table of faults has %d rows: this test does not find them", len(rows))
	}
	for _, m := range rows {
		if !strings.Contains(promises, "*"+m[1]+"*") {
			t.Errorf("docs/reliability.md has no promise for the fault %q", m[1])
		}
	}
}
