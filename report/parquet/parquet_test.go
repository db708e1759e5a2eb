package parquet

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"netdelta/report/reporttest"
	"netdelta/report/rows"
	"netdelta/result"
)

// file writes a table and opens it.
func file(t *testing.T, run result.Run, trials []result.Trial, table string) (*parquet.File, []byte) {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, run, result.List(trials), table); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return f, out.Bytes()
}

// readBack reads a table and compares it with the rows that went in.
func readBack[Row any](t *testing.T, run result.Run, trials []result.Trial, table string, want iter.Seq[Row]) {
	t.Helper()
	_, text := file(t, run, trials, table)
	got, err := parquet.Read[Row](bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	if diff := cmp.Diff(slices.Collect(want), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s:\n%s", table, diff)
	}
}

func TestTablesAreReadBack(t *testing.T) {
	short := reporttest.Usual()
	short.Builds, short.Networks, short.Datagrams = 3, []string{"vxlan"}, true // no interval: null bounds
	lossy, lossyTrials := short.Measure(t)
	usual, usualTrials := reporttest.Usual().Measure(t)
	spoiled, spoiledTrials := reporttest.Spoiled(t)
	guarded, guardedTrials := reporttest.Guarded().Measure(t)
	usualTrials[0].TCP = &result.TCPInfo{Retransmits: 3, CongestionControl: "bbr"}
	usualTrials[1].Path = &result.Path{OK: true, Weak: []string{"no sample", "no counters"}}
	for _, r := range []struct {
		run    result.Run
		trials []result.Trial
	}{{guarded, guardedTrials}, {usual, usualTrials}, {lossy, lossyTrials}, {spoiled, spoiledTrials}, {result.Run{}, nil}} {
		readBack(t, r.run, r.trials, rows.TableDeltas, rows.Deltas(r.run))
		readBack(t, r.run, r.trials, rows.TableEffects, rows.Effects(r.run))
		readBack(t, r.run, r.trials, rows.TableTrials, rows.Trials(r.run, result.List(r.trials)))
		readBack(t, r.run, r.trials, rows.TableBursts, rows.Bursts(r.run, result.List(r.trials)))
		readBack(t, r.run, r.trials, rows.TableChecks, rows.Checks(r.run))
		readBack(t, r.run, r.trials, rows.TableClaims, rows.Claims(r.run))
	}
}

// Other programs see types, and null where there is no interval; not text, and not zero.
func TestTypes(t *testing.T) {
	w := reporttest.Usual()
	w.Builds = 2
	run, trials := w.Measure(t)
	for table, columns := range map[string]map[string]string{
		rows.TableDeltas: {
			"ratio_low": "DOUBLE", "blocks": "INT(64,true)", "headline": "BOOLEAN", "network": "STRING", "excluded": "MAP", "warnings": "LIST",
		},
		rows.TableTrials: {"started": "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS)", "p50_ns": "INT(64,true)", "path_ok": "BOOLEAN"},
		rows.TableBursts: {"p50_ns": "DOUBLE", "transactions": "INT(64,true)", "message_bytes": "INT(64,true)"},
	} {
		f, _ := file(t, run, trials, table)
		for name, want := range columns {
			i := slices.IndexFunc(f.Schema().Fields(), func(f parquet.Field) bool { return f.Name() == name })
			if i < 0 {
				t.Errorf("%s has no column %s", table, name)
				continue
			}
			if got := f.Schema().Fields()[i].Type().String(); got != want {
				t.Errorf("%s.%s is %s, want %s", table, name, got, want)
			}
		}
		for _, group := range f.Metadata().RowGroups {
			for _, column := range group.Columns {
				if codec := column.MetaData.Codec.String(); codec != "ZSTD" {
					t.Errorf("%s, %v is compressed by %s", table, column.MetaData.PathInSchema, codec)
				}
			}
		}
		if got, _ := f.Lookup("netdelta.run"); got != run.Run {
			t.Errorf("%s is of the run %q", table, got)
		}
	}
	_, text := file(t, run, trials, rows.TableDeltas)
	got, err := parquet.Read[struct {
		Low *float64 `parquet:"ratio_low,optional"`
	}](bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range got {
		if row.Low != nil {
			t.Errorf("two builds give a bound of %v", *row.Low)
		}
	}
	if len(got) == 0 {
		t.Error("no rows")
	}
}

// A table larger than a row group is whole, and written as it comes.
func TestManyRows(t *testing.T) {
	var checks []result.Check
	for range rowGroup + 300 {
		checks = append(checks, result.Check{Trial: "vxlan#1", Check: "path", OK: true})
	}
	f, _ := file(t, result.Run{Checks: checks}, nil, rows.TableChecks)
	if f.NumRows() != int64(len(checks)) || len(f.RowGroups()) < 2 {
		t.Errorf("%d rows in %d groups, want %d in more than one", f.NumRows(), len(f.RowGroups()), len(checks))
	}
}

func TestErrors(t *testing.T) {
	run, trials := reporttest.Usual().Measure(t)
	for _, table := range rows.Tables() {
		if err := Write(reporttest.Full{}, run, result.List(trials), table); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", table, err)
		}
	}
	if err := Write(io.Discard, run, result.List(trials), "cells"); err == nil || !strings.Contains(err.Error(), "deltas, effects, trials") {
		t.Errorf("an unknown table: %v", err)
	}
}
