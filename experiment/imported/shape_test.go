package imported_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netdelta/experiment/imported"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/workload"
)

// published makes files of the shape of a public benchmark: 22 networks, three tests of iperf3 on three days, and a test that died.
func published(t *testing.T) []imported.Source {
	t.Helper()
	text, err := os.ReadFile(sample("iperf3/testdata/tcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	received := regexp.MustCompile(`("sum_received":\s*\{[^}]*"bits_per_second":\s*)[0-9.e+]+`)
	day := regexp.MustCompile(`("timesecs":\s*)[0-9]+`)
	random := rand.New(rand.NewPCG(22, 3))
	var all []imported.Source
	for i := range 22 {
		s := imported.Source{Network: fmt.Sprintf("n%02d", i)}
		for k := range 3 {
			rate := 31e9 * (1 - 0.02*float64(i)) * (1 + 0.02*random.NormFloat64())
			changed := received.ReplaceAllString(string(text), fmt.Sprintf("${1}%.0f", rate))
			changed = day.ReplaceAllString(changed, fmt.Sprintf("${1}%d", 1_713_000_000+86_400*k))
			if !strings.Contains(changed, fmt.Sprintf("%.0f", rate)) {
				t.Fatal("the sample has no rate to put in")
			}
			path := filepath.Join(t.TempDir(), fmt.Sprintf("run%d.json", k))
			if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
				t.Fatal(err)
			}
			s.Files = append(s.Files, path)
		}
		all = append(all, s)
	}
	empty := filepath.Join(t.TempDir(), "run3.json")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	all[5].Files = append(all[5].Files, empty)
	return all
}

// judged draws the conclusions.
func judged(run *result.Run, trials []result.Trial) {
	words.NewJudge([]workload.Workload{{Name: "tcp-stream", Headline: "throughput"}}).Conclude(run, trials)
}

// Of 22 networks with three files each, those far from the baseline are called different, and an empty file is named and no more.
func TestPublishedShape(t *testing.T) {
	sources := published(t)
	if _, err := imported.Read(sources, imported.Options{}); !errors.Is(err, imported.ErrUnknown) || !strings.Contains(err.Error(), "run3.json") {
		t.Errorf("an empty file: %v", err)
	}
	in, err := imported.Read(sources, imported.Options{SkipBad: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.LeftOut) != 1 || !strings.Contains(in.LeftOut[0], "run3.json") || !strings.Contains(in.LeftOut[0], imported.ErrUnknown.Error()) {
		t.Errorf("left out: %q", in.LeftOut)
	}
	judged(&in.Run, in.Trials)
	if len(in.Run.Deltas) != 21 || len(in.Run.Contrasts) != 231 {
		t.Fatalf("%d deltas, %d contrasts", len(in.Run.Deltas), len(in.Run.Contrasts))
	}
	slower := 0
	for _, d := range in.Run.Deltas {
		if d.Verdict == "slower" {
			slower++
		}
	}
	t.Logf("%d of 21 are slower than the baseline", slower)
	if slower < 10 {
		t.Errorf("of 21 networks, up to 42%% slower, %d are called so", slower)
	}
	// The tests took two seconds each, on three days.
	if took := in.Run.Took(); took < 130*time.Second || took > 134*time.Second {
		t.Errorf("66 tests of 2 s took %v", took)
	}
	for _, note := range in.Run.Notes {
		if strings.Contains(note, "count for nothing") {
			t.Errorf("unpaired files all count: %q", note)
		}
	}
}

// Another network of an imported run may be the baseline: what differs from what stays the same.
func TestRebase(t *testing.T) {
	in, err := imported.Read(published(t), imported.Options{SkipBad: true})
	if err != nil {
		t.Fatal(err)
	}
	differ := func() map[string]bool {
		judged(&in.Run, in.Trials)
		pairs := map[string]bool{}
		for _, c := range in.Run.Contrasts {
			pairs[min(c.Cell, c.Other)+" "+max(c.Cell, c.Other)] = c.Cheaper != ""
		}
		return pairs
	}
	before := differ()
	if err := imported.Rebase(&in.Run, "n10"); err != nil {
		t.Fatal(err)
	}
	after := differ()
	for pair, was := range before {
		if is, known := after[pair]; !known || is != was {
			t.Errorf("%s differ: %v, and with another baseline %v", pair, was, is)
		}
	}
	faster := 0
	for _, d := range in.Run.Deltas {
		if d.Baseline != "n10" || d.Network == "n10" {
			t.Errorf("%s against %s", d.Network, d.Baseline)
		}
		if d.Ratio > 1 {
			faster++
		}
	}
	if faster < 8 || faster > 12 {
		t.Errorf("%d of 21 are faster than the eleventh of 22", faster)
	}
	if err := imported.Rebase(&in.Run, "metal"); !errors.Is(err, imported.ErrBaseline) || !strings.Contains(err.Error(), "n00, n01") {
		t.Errorf("a baseline that is not there: %v", err)
	}
}
