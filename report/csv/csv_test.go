package csv

import (
	"bytes"
	"encoding/csv"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/golden"
	"netdelta/internal/property"
	"netdelta/report/reporttest"
	"netdelta/report/rows"
	"netdelta/result"
)

// sample is a small run.
func sample(t *testing.T) (result.Run, []result.Trial) {
	w := reporttest.Usual()
	w.Builds, w.Rounds, w.Networks = 6, 2, []string{"vxlan"}
	run, trials := w.Measure(t)
	run.Checks = []result.Check{{Trial: "vxlan#1", Check: "path", Expected: "node0/eth0", Observed: "node0/eth1"}}
	run.Claims = []result.Claim{{ID: "c", Says: "VXLAN costs most", Verdict: "confirmed", Measured: "+31%"}}
	return run, trials
}

func TestGolden(t *testing.T) {
	run, trials := sample(t)
	guarded, _ := reporttest.Guarded().Measure(t)
	run.Effects = guarded.Effects
	for _, table := range rows.Tables() {
		var got bytes.Buffer
		if err := Write(&got, run, result.List(trials), table); err != nil {
			t.Fatal(err)
		}
		golden.CheckRounded(t, filepath.Join("testdata", table+".csv"), got.String())
	}
}

// read reads a table back, by the rules of RFC 4180.
func read(t *testing.T, text []byte) (head []string, lines [][]string) {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[0], all[1:]
}

func TestEveryDeltaHasARow(t *testing.T) {
	run, trials := sample(t)
	var out bytes.Buffer
	if err := Write(&out, run, result.List(trials), rows.TableDeltas); err != nil {
		t.Fatal(err)
	}
	head, lines := read(t, out.Bytes())
	if len(lines) != len(run.Deltas)+len(run.Null) || len(run.Deltas) == 0 {
		t.Errorf("%d rows of %d deltas and %d null checks", len(lines), len(run.Deltas), len(run.Null))
	}
	if len(head) != len(columns(reflect.TypeFor[rows.Delta]())) {
		t.Errorf("%d columns", len(head))
	}
	if text := out.String(); strings.Count(text, "\r\n") != len(lines)+1 || strings.Count(text, "\n") != len(lines)+1 {
		t.Error("lines don't end with CR LF")
	}
}

// No field begins like a formula, none has what a terminal obeys, and the file is still read as it was meant.
func TestHostileNames(t *testing.T) {
	run, trials := reporttest.Spoiled(t)
	for _, table := range rows.Tables() {
		var out bytes.Buffer
		if err := Write(&out, run, result.List(trials), table); err != nil {
			t.Fatal(err)
		}
		head, lines := read(t, out.Bytes())
		if len(lines) == 0 {
			t.Errorf("%s is empty", table)
		}
		for _, line := range lines {
			for i, field := range line {
				if strings.ContainsAny(field, "\x1b\x07\n\u202e") {
					t.Errorf("%s, %s: %q", table, head[i], field)
				}
				if field != "" && strings.ContainsRune("=+@", rune(field[0])) {
					t.Errorf("%s, %s begins a formula: %q", table, head[i], field)
				}
			}
		}
	}
}

func TestHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"vxlan": "vxlan", "": "", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(1)": "'@SUM(1)", "  =1": "'  =1", "\t=1": "' =1",
		"\r=1": "' =1", "\uff1d1": "'\uff1d1", "a=b": "a=b", "\x1b]0;x\x07": "?]0;x?", "1-2": "1-2",
	} {
		if got := harmless(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
	}
}

// Whatever a name is, it is one field of one line, and no formula.
func TestAnyNameIsOneField(t *testing.T) {
	property.Check(t, func(r *rapid.T) {
		name := rapid.String().Draw(r, "name")
		var out bytes.Buffer
		if err := Write(&out, result.Run{Claims: []result.Claim{{ID: name, Says: "says"}}}, nil, rows.TableClaims); err != nil {
			r.Fatal(err)
		}
		all, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(all) != 2 || len(all[1]) != 9 || all[1][2] != "says" {
			r.Fatalf("%q: %v %q", name, err, all)
		}
		if id := strings.TrimLeft(all[1][1], " "); id != "" && strings.ContainsRune("=+-@", rune(id[0])) {
			r.Fatalf("%q begins a formula: %q", name, id)
		}
	})
}

func TestErrorsOfTheWriter(t *testing.T) {
	run, trials := sample(t)
	for _, table := range rows.Tables() {
		if err := Write(reporttest.Full{}, run, result.List(trials), table); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", table, err)
		}
	}
	if err := Write(reporttest.Full{}, run, result.List(trials), "cells"); err == nil || !strings.Contains(err.Error(), "deltas, effects, trials") {
		t.Errorf("an unknown table: %v", err)
	}
}
