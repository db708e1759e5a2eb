package html

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/internal/golden"
	"netdelta/report/reporttest"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// text is a run's report.
func text(t testing.TB, run result.Run, trials []result.Trial, options ...Option) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, run, insight.Summarize(result.List(trials)), options...); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// small is a run whose figures are all given, so that its report hangs on nothing but this package.
func small(tb testing.TB) (result.Run, []result.Trial) {
	tb.Helper()
	w := world{
		networks: []string{"bridge", "vxlan"}, builds: 2, rounds: 3, samples: 0,
		loads: []result.Setting{{Workload: "tcp-rr", Params: result.Params{Message: 300}, Placement: result.CrossNode}},
	}
	run, trials := w.run(tb)
	run.Deltas, run.Null, run.Checks, run.Advice = nil, nil, nil, []result.Advice{{Says: "Take a bridge.", Why: "It costs less."}}
	for _, c := range run.Cells {
		switch {
		case c.Unsupported != "" || c.Role == result.RoleBaseline:
		case c.Role == result.RoleControl:
			n := estimated(c, "p50", 1.001, 0.004)
			n.Headline, n.Verdict = true, "same"
			run.Null = append(run.Null, n)
		default:
			d := estimated(c, "p50", truth(c.Network, c.Placement), 0.012)
			d.Headline = true
			run.Deltas = append(run.Deltas, d, estimated(c, "p99", 1.3, 0.4))
		}
	}
	run.Contrasts = reporttest.Contrasts(run.Deltas...)
	run.Checks = []result.Check{{Trial: "bridge#0", Check: "loss", Expected: "0 datagrams lost", Observed: "3 lost"}}
	return run, trials
}

// TestGolden shows each change of the page to its author. The parts that are files of their own are left out.
func TestGolden(t *testing.T) {
	run, trials := small(t)
	got := text(t, run, trials, WithStudy([]byte("study: latency\nbaseline: host\n")))
	for _, part := range []string{(&page{}).styles(), scripts()} {
		if !strings.Contains(got, part) {
			t.Fatal("the page lacks its style or its script, or has it changed: the browser would refuse it")
		}
		got = strings.Replace(got, part, "…", 1)
	}
	policy := (&page{}).Policy()
	if !strings.Contains(got, strings.ReplaceAll(policy, "'", "&#39;")) {
		t.Error("the page has no policy against what is not its own")
	}
	got = strings.Replace(got, strings.ReplaceAll(policy, "'", "&#39;"), "…", 1)
	golden.Check(t, filepath.Join("testdata", "small.html"), got)
}

// TestSameRunSamePage holds that nothing in a page hangs on chance or on the clock.
func TestSameRunSamePage(t *testing.T) {
	run, trials := usual().run(t)
	trials = spoil(&run, trials)
	first := text(t, run, trials)
	for range 3 {
		if diff := cmp.Diff(first, text(t, run, trials)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// evil is what a study may hold to become more than text: markup, the end of what surrounds it, and what a terminal obeys.
const evil = `<img src=x onerror="window.hit=1"><script>window.hit=1</script></style></title></svg>"' onfocus=window.hit=1 autofocus x="` +
	"\x1b]0;owned\a\x1b[2J\u202e\u200b\u2060\ufeff\u2028\r\n\u009b1m\xff{{.Run}}"

// poison appends it to every text in a value, except in the given fields.
func poison(v reflect.Value, except map[string]bool) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() && v.String() != "" {
			v.SetString(v.String() + evil)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), except)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), except)
		}
	case reflect.Map:
		poisoned := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			key, value := reflect.New(k.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(k)
			value.Set(v.MapIndex(k))
			poison(key, except)
			poison(value, except)
			poisoned.SetMapIndex(key, value)
		}
		if v.CanSet() {
			v.Set(poisoned)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !except[f.Name] {
				poison(v.Field(i), except)
			}
		}
	default: // numbers are harmless
	}
}

// TestWhereItRan: a page speaks of the machine, or of the cluster that the run was made on.
func TestWhereItRan(t *testing.T) {
	run, trials := usual().run(t)
	trials = spoil(&run, trials)
	for says, cluster := range map[string]*result.Cluster{
		"wanders with the machine;": nil, "for this kernel and this machine alone": nil, "by what the machine did meanwhile": nil,
		"wanders with the cluster;": {Name: "c"}, "for these nodes and their kernel alone": {Name: "c"}, "by what the cluster did meanwhile": {Name: "c"},
	} {
		run.Environment.Cluster = cluster
		if !strings.Contains(text(t, run, trials), says) {
			t.Errorf("%q is not on the page of a run on %v", says, cluster)
		}
	}
}

// hostile is a run in which every text is evil; sparing says whether what the page must know in order to draw is left as it is.
func hostile(tb testing.TB, sparing bool) (result.Run, []result.Trial) {
	tb.Helper()
	run, trials := usual().run(tb)
	trials = spoil(&run, trials)
	run.Environment.Cluster = reporttest.HostileCluster()
	except := map[string]bool{"Histogram": true, "Role": true, "Placement": true}
	if sparing {
		for _, name := range []string{"Metric", "Unit", "Better", "Verdict"} {
			except[name] = true
		}
	}
	poison(reflect.ValueOf(&run).Elem(), except)
	poison(reflect.ValueOf(&trials).Elem(), except)
	return run, trials
}

// TestHostileText holds that no text of a run becomes markup, and that no control character gets through.
func TestHostileText(t *testing.T) {
	for _, sparing := range []bool{true, false} {
		run, trials := hostile(t, sparing)
		got := text(t, run, trials, WithStudy([]byte("study: "+evil)))
		if !utf8.ValidString(got) {
			t.Error("the page is not UTF-8")
		}
		for i, r := range got {
			if r != '\n' && ui.Unseen(r) {
				t.Fatalf("the unseen character %U got through: %q", r, got[max(i-80, 0):i+10])
			}
		}
		for _, bad := range []string{"<img", "<script>window", `x="`, "onfocus=window.hit=1 autofocus x=\""} {
			if i := strings.Index(got, bad); i >= 0 && bad != `x="` {
				t.Errorf("%q got through: %q", bad, got[max(i-80, 0):i+40])
			}
		}
		data := strings.Count(got, `<script type="application/json"`)
		if n := strings.Count(got, "<script"); n != 1+data || data > 1 {
			t.Errorf("the page has %d scripts, of which %d are data, want one and at most one", n, data)
		}
		if n := strings.Count(got, "&lt;img src=x"); n < 100 {
			t.Errorf("the text itself is there %d times: this test looks at nothing", n)
		}
	}
}

// odd are runs that lack most of what a page shows.
func odd(tb testing.TB) map[string]struct {
	run    result.Run
	trials []result.Trial
	says   string
} {
	tb.Helper()
	type oddity = struct {
		run    result.Run
		trials []result.Trial
		says   string
	}
	usualRun, usualTrials := usual().run(tb)
	alone := usual()
	alone.networks, alone.loads = []string{"bridge"}, alone.loads[:1]
	aloneRun, aloneTrials := alone.run(tb)
	once := usual()
	once.builds = 1
	onceRun, onceTrials := once.run(tb)
	onceRun.Ended = "interrupted"
	streams := usual()
	streams.loads = streams.loads[3:]
	streamsRun, streamsTrials := streams.run(tb)
	old := usual()
	old.bare = true
	oldRun, oldTrials := old.run(tb)
	begun := usualRun
	begun.Ended, begun.Finished = "running", time.Time{}
	half := usualTrials[:len(usualTrials)*2/3]
	words.NewJudge(nil).Conclude(&begun, half)
	nothing := usualRun
	nothing.Deltas, nothing.Null, nothing.Advice, nothing.Ended = nil, nil, nil, "failed"
	lossy, lossyTrials := losing(tb)
	elsewhere := slices.Clone(usualTrials)
	for i := range elsewhere {
		elsewhere[i].Bursts.KernelCPU = nil
	}
	return map[string]oddity{
		"zero":           {result.Run{}, nil, "Nothing could be compared"},
		"no trials":      {usualRun, nil, "What each network costs"},
		"no deltas":      {nothing, nil, "This run failed before its end"},
		"one network":    {aloneRun, aloneTrials, "bridge costs"},
		"one build":      {onceRun, onceTrials, "too few builds for a verdict"},
		"streams":        {streamsRun, streamsTrials, "throughput"},
		"older version":  {oldRun, oldTrials, "the trials were not watched"},
		"half written":   {begun, half, "This run has not ended"},
		"loss":           {lossy, lossyTrials, "points"},
		"other machines": {usualRun, elsewhere, "in no thread&#39;s name is not known"},
		"broken records": {usualRun, broken(usualTrials), "What each network costs"},
	}
}

// losing is a run whose headline is a metric without a ratio.
func losing(tb testing.TB) (result.Run, []result.Trial) {
	tb.Helper()
	w := usual()
	w.loads, w.samples = []result.Setting{{Workload: "udp-stream", Params: result.Params{Rate: 1e9}, Placement: result.CrossNode}}, 0
	run, trials := w.run(tb)
	for i := range trials {
		t := &trials[i]
		t.Sent, t.Lost = 100_000, int64(10*i%70)
		t.Bursts.P50, t.Bursts.P90, t.Bursts.Min, t.Bursts.Mean, t.Bursts.P99, t.Bursts.Split = nil, nil, nil, nil, nil, nil
	}
	words.NewJudge(nil).Conclude(&run, trials)
	return run, trials
}

// broken are trials as no version wrote them: columns cut short, histograms that can't be read, times before the start.
func broken(trials []result.Trial) []result.Trial {
	all := make([]result.Trial, len(trials))
	copy(all, trials)
	for i := range all {
		t := &all[i]
		switch i % 4 {
		case 0:
			t.Histogram = "not a histogram"
		case 1:
			t.Bursts.Start, t.Bursts.Disturbed = t.Bursts.Start[:1], nil
		case 2:
			t.Bursts.ClientCPU, t.Bursts.Work = t.Bursts.ClientCPU[:2], nil
			t.Started = began().Add(-time.Hour)
		}
	}
	return all
}

func TestOddRuns(t *testing.T) {
	for name, c := range odd(t) {
		t.Run(name, func(t *testing.T) {
			got := text(t, c.run, c.trials)
			if !strings.Contains(got, c.says) {
				t.Errorf("the page does not say %q", c.says)
			}
			for _, nonsense := range []string{"NaN", "Inf%", "+Inf", "%!", "<nil>"} {
				if i := strings.Index(strings.ReplaceAll(got, scripts(), ""), nonsense); i >= 0 {
					t.Errorf("the page says %s: %q", nonsense, got[max(i-200, 0):i+20])
				}
			}
		})
	}
}

// full is a disk that takes so many bytes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f -= full(len(p)); *f < 0 {
		return 0, os.ErrClosed
	}
	return len(p), nil
}

func TestWriterErrorIsReturned(t *testing.T) {
	run, trials := small(t)
	for _, room := range []full{0, 30_000} {
		if err := Write(&room, run, insight.Summarize(result.List(trials))); !errors.Is(err, os.ErrClosed) {
			t.Errorf("error %v, want %v", err, os.ErrClosed)
		}
	}
}

// However many null checks failed, one banner says so, and names the worst.
func TestOneBannerForNullChecks(t *testing.T) {
	run, trials := usual().run(t)
	settings := 0
	for i := range run.Null {
		if n := &run.Null[i]; n.Headline && n.Ratio > 0 {
			settings++
			n.Verdict, n.Ratio = "slower", 1+float64(settings)/100
		}
	}
	all := gather.Where(newPage(run, insight.Summarize(result.List(trials))).Banners, func(b banner) bool { return strings.Contains(b.Text, "null check") })
	if len(all) != 1 || settings != 4 || !strings.Contains(all[0].Text, "4 of 4 settings") || !strings.Contains(all[0].Text, "(+4.0%)") {
		t.Errorf("for %d failed null checks stand %q, want one banner that counts them and names the worst", settings, all)
	}
}

// What the study is about and was not measured is said before the answer, which is of another load.
func TestNotMeasuredComesFirst(t *testing.T) {
	run, trials := usual().run(t)
	kept := run.Cells[:0]
	for _, c := range run.Cells {
		if c.Workload == "tcp-rr" {
			c.Unsupported = "needs a server that is not here; install it"
		}
		kept = append(kept, c)
	}
	run.Cells = kept
	words.NewJudge(nil).Conclude(&run, trials)
	got := text(t, run, trials)
	missing, answer := strings.Index(got, "<b>Not measured: tcp-rr"), strings.Index(got, `class="answer"`)
	if missing < 0 || answer < missing || !strings.HasPrefix(got[answer:], `class="answer" data-says="s0" data-answered><span class="of">udp-rr`) {
		t.Errorf("what is missing stands at %d, the answer at %d: %.90q", missing, answer, got[max(answer, 0):])
	}
}
