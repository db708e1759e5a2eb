package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// againAtMost is how many tests may fail and still be given a second try. A busy machine fails one or two; more are a fault.
const againAtMost = 5

// again lists what deserves a second try by itself: a line for each package, with the expression that finds the tests in it
// that failed; all of them where the package as a whole came to an end it should not have. It is empty where nothing failed,
// where a package does not build, and where so much failed that it can't be chance.
func (r *report) again() []string {
	if len(r.failing)+len(r.broken) == 0 || len(r.unbuilt) > 0 {
		return nil
	}
	tests := map[string][]string{}
	count := 0
	for _, n := range r.failing {
		top, _, _ := strings.Cut(n.test, "/")
		if !slices.Contains(tests[n.pkg], top) {
			tests[n.pkg] = append(tests[n.pkg], top)
			count++
		}
	}
	var lines []string
	for _, pkg := range r.broken {
		if len(tests[pkg]) == 0 || r.died[pkg] {
			count++
			lines = append(lines, pkg+" .")
			continue
		}
		lines = append(lines, fmt.Sprintf("%s ^(%s)$", pkg, strings.Join(tests[pkg], "|")))
	}
	if count > againAtMost {
		return nil
	}
	return lines
}

// keepAgain writes the list into a file, for who started the tests.
func (r *report) keepAgain(file string) error {
	if file == "" {
		return nil
	}
	text := ""
	for _, line := range r.again() {
		text += line + "\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("keeping the list of tests to try again: %w", err)
	}
	return nil
}
