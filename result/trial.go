package result

import (
	"errors"
	"fmt"
)

// ID names the trial within its run: its cell and its build.
func (t Trial) ID() string { return fmt.Sprintf("%s#%d", t.Cell, t.Build) }

// Measured says whether the trial gave anything.
func (t Trial) Measured() bool { return t.Failed == "" }

// validate returns what makes the trial useless as a record, nil if nothing does.
func (t Trial) validate() error {
	switch {
	case t.Schema != Schema:
		return fmt.Errorf("its schema is %d, not %d", t.Schema, Schema)
	case t.Cell == "":
		return errors.New("it names no cell")
	case t.Role != RoleCell && t.Role != RoleBaseline && t.Role != RoleControl && t.Role != RoleReference:
		return fmt.Errorf("its role is %q, not %q, %q, %q or %q", t.Role, RoleCell, RoleBaseline, RoleControl, RoleReference)
	case t.Build < 0:
		return fmt.Errorf("its build is %d, below 0", t.Build)
	}
	return t.Bursts.validate()
}

// validate returns an error if the columns don't belong together.
func (b Bursts) validate() error {
	n := len(b.Round)
	columns := []struct {
		name     string
		rows     int
		optional bool
	}{
		{"start_ns", len(b.Start), false},
		{"duration_ns", len(b.Duration), false},
		{"span_ns", len(b.Span), true},
		{"transactions", len(b.Transactions), true},
		{"lost", len(b.Lost), true},
		{"min", len(b.Min), true},
		{"p50", len(b.P50), true},
		{"p90", len(b.P90), true},
		{"p99", len(b.P99), true},
		{"mean", len(b.Mean), true},
		{"max", len(b.Max), true},
		{"split", len(b.Split), true},
		{"sweep_level", len(b.SweepLevel), true},
		{"throughput", len(b.Throughput), true},
		{"disturbed", len(b.Disturbed), true},
		{"pair", len(b.Pair), true},
	}
	for _, column := range columns {
		if column.rows != n && (column.rows != 0 || !column.optional) {
			return fmt.Errorf("its bursts have %d rounds but %d entries of %s", n, column.rows, column.name)
		}
	}
	return nil
}

// complete returns b with empty instead of missing columns where every trial has one, so that they are never null in JSON.
func (b Bursts) complete() Bursts {
	b.Round, b.Start, b.Duration = orEmpty(b.Round), orEmpty(b.Start), orEmpty(b.Duration)
	return b
}
