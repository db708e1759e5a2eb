package rows

import (
	"fmt"
	"iter"
	"reflect"
	"strings"

	"netdelta/result"
)

// Trials are the rows of the table trials, in the order of the journal. A histogram that can't be read leaves its columns
// empty.
func Trials(run result.Run, trials result.Trials) iter.Seq[Trial] {
	return func(yield func(Trial) bool) {
		levels := levels(run)
		for t := range result.Each(trials) {
			if !yield(trial(levels.of(t.Cell), t)) {
				return
			}
		}
	}
}

// Bursts are the rows of the table bursts, in the order of the journal and within a trial as they were measured.
func Bursts(run result.Run, trials result.Trials) iter.Seq[Burst] {
	return func(yield func(Burst) bool) {
		levels := levels(run)
		for t := range result.Each(trials) {
			level := levels.of(t.Cell)
			for row := range t.Bursts.Round {
				if !yield(burst(level, t, row)) {
					return
				}
			}
		}
	}
}

// known are the levels of a run's cells.
type known struct {
	run   string
	cells map[string]Level
}

func levels(run result.Run) known {
	k := known{run.Run, map[string]Level{}}
	for _, c := range run.Cells {
		k.cells[c.ID] = level(run.Run, c)
	}
	return k
}

// of are the levels of a cell; of one that the run's record does not have only its name.
func (k known) of(cell string) Level {
	if l, ok := k.cells[cell]; ok {
		return l
	}
	return Level{Run: k.run, Cell: cell}
}

func trial(level Level, t *result.Trial) Trial {
	row := Trial{
		Level: level, Role: string(t.Role), Build: int64(t.Build), Started: t.Started.UTC(), Finished: t.Finished.UTC(),
		Bursts: int64(len(t.Bursts.Round)), Transactions: t.Transactions, Bytes: t.Bytes, Sent: t.Sent, Lost: t.Lost,
		Reordered: t.Reordered, Errors: t.Errors, ClientCPU: int64(t.ClientCPU), ServerCPU: int64(t.ServerCPU), Failed: t.Failed,
	}
	for _, why := range t.Bursts.Disturbed {
		if why != "" {
			row.Disturbed++
		}
	}
	if h, err := result.DecodeHistogram(t.Histogram); err == nil && h.TotalCount() > 0 {
		for _, p := range []struct {
			into    **int64
			percent float64
		}{{&row.P50, 50}, {&row.P90, 90}, {&row.P99, 99}, {&row.P999, 99.9}} {
			*p.into = new(h.ValueAtPercentile(p.percent))
		}
		row.Max = new(h.Max())
	}
	if c := t.TCP; c != nil {
		row.Retransmits, row.MinRTT = new(int64(c.Retransmits)), new(int64(c.MinRTT))
		row.Cwnd, row.MSS, row.Congestion = new(int64(c.Cwnd)), new(int64(c.MSS)), &c.CongestionControl
	}
	if p := t.Path; p != nil {
		row.PathOK, row.PathFindings, row.PathWeak = &p.OK, p.Findings, p.Weak
		row.Encapsulation, row.Overhead, row.PathMTU = p.Encapsulation, int64(p.Overhead), int64(p.MTU)
	}
	row.served(t)
	return row
}

// served fills in what bounded a trial, and what its server measured of its storage and replication.
func (row *Trial) served(t *result.Trial) {
	if b := t.Bound; b != nil {
		row.Bound = b.By
		for _, s := range []struct {
			into  **float64
			share float64
		}{{&row.LinkShare, b.Link}, {&row.CPUShare, b.CPU}, {&row.DiskShare, b.Disk}} {
			if s.share >= 0 {
				*s.into = &s.share
			}
		}
	}
	if d := t.Disk; d != nil {
		row.DiskRate, row.DiskP50 = &d.Rate, new(d.P50.Nanoseconds())
	}
	if r := t.Replication; r != nil {
		row.Replication = new(r.Mean.Nanoseconds())
	}
}

func burst(level Level, t *result.Trial, row int) Burst {
	b := &t.Bursts
	var pair *int64
	if row < len(b.Pair) {
		pair = new(int64(b.Pair[row]))
	}
	return Burst{
		Level: level, Role: string(t.Role), Build: int64(t.Build), Round: int64(b.Round[row]), Start: value(b.Start, row),
		Duration: value(b.Duration, row), Span: at(b.Span, row), Transactions: at(b.Transactions, row), Lost: at(b.Lost, row), Min: at(b.Min, row),
		P50: at(b.P50, row), P90: at(b.P90, row), P99: at(b.P99, row), Mean: at(b.Mean, row), Max: at(b.Max, row), Split: at(b.Split, row), SweepLevel: at(b.SweepLevel, row),
		Throughput: at(b.Throughput, row), Rate: at(b.Rate, row), Errors: at(b.Errors, row), ClientCPU: at(b.ClientCPU, row), ServerCPU: at(b.ServerCPU, row),
		KernelCPU: at(b.KernelCPU, row), Work: at(b.Work, row), Moved: at(b.Moved, row), NoDrop: at(b.NoDrop, row),
		PartialDrop: at(b.PartialDrop, row), AtLeast: at(b.AtLeast, row), Load10: at(b.Load10, row), Load50: at(b.Load50, row), Load90: at(b.Load90, row),
		Disturbed: value(b.Disturbed, row), Pair: pair,
	}
}

// at is an entry of a column, nil where the column has none.
func at[T any](column []T, row int) *T {
	if row >= len(column) {
		return nil
	}
	return &column[row]
}

// value is an entry of a column, zero where the column has none.
func value[T any](column []T, row int) T {
	var zero T
	if row >= len(column) {
		return zero
	}
	return column[row]
}

// Table is the rows of one table, all of one type.
type Table struct {
	Row reflect.Type
	All iter.Seq[any]
}

// Of makes a table of a run, one of Tables.
func Of(run result.Run, trials result.Trials, name string) (Table, error) {
	switch name {
	case TableDeltas:
		return tableOf(Deltas(run)), nil
	case TableEffects:
		return tableOf(Effects(run)), nil
	case TableTrials:
		return tableOf(Trials(run, trials)), nil
	case TableBursts:
		return tableOf(Bursts(run, trials)), nil
	case TableChecks:
		return tableOf(Checks(run)), nil
	case TableClaims:
		return tableOf(Claims(run)), nil
	}
	return Table{}, fmt.Errorf("there is no table %q; there are %s", name, strings.Join(Tables(), ", "))
}

func tableOf[Row any](all iter.Seq[Row]) Table {
	return Table{reflect.TypeFor[Row](), func(yield func(any) bool) {
		for row := range all {
			if !yield(row) {
				return
			}
		}
	}}
}
