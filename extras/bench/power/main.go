// Command power prints the tables of docs/statistics.md from simulation: coverage of the intervals, false claims, few builds,
// the stopping rule, power against measuring time, ranks, and machines with a state. It measures nothing and needs no network.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"netdelta/extras/bench/harness"
)

func main() {
	table := flag.String("table", "all", "which table: all, coverage, few, stopping, floor, power, ranks or states")
	trials := flag.Int("trials", 4000, "simulated experiments for each figure")
	harness.Main("power", func(context.Context) error { return tables(*table, *trials) })
}

func tables(name string, trials int) error {
	tables := []struct {
		name  string
		print func(io.Writer, int)
	}{{"coverage", printCoverage}, {"few", printFew}, {"stopping", printStopping}, {"floor", printFloor}, {"power", printPower}, {"ranks", printRanks}, {"states", printStates}}
	known := []string{"all"}
	found := false
	for _, t := range tables {
		known = append(known, t.name)
		if name == "all" || name == t.name {
			found = true
			t.print(os.Stdout, trials)
			fmt.Println()
		}
	}
	if !found || trials < 1 {
		return harness.UsageError(fmt.Sprintf("no table %q of %d trials: choose one of %s, and at least one trial", name, trials, strings.Join(known, ", ")))
	}
	return nil
}
