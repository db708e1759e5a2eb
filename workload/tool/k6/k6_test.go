package k6_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/workload/tool"
	"netdelta/workload/tool/k6"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, name string) k6.Report {
	t.Helper()
	if !k6.Is(sample(t, name)) {
		t.Errorf("%s is not recognised", name)
	}
	r, err := k6.Parse(sample(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSummaries(t *testing.T) {
	r := parse(t, "summary.json")
	if r.Requests != 7200 || r.Failed != 12 || r.Rate != 719.92 || r.VUs != 8 || r.P50 != 7.55e6 || r.P90 != 14.2e6 || r.P99 != 0 || r.Received != 5270400 {
		t.Errorf("%+v", r)
	}
	if r.Duration < 10*time.Second || r.Duration > 10010*time.Millisecond {
		t.Errorf("it took %v", r.Duration)
	}
	if r := parse(t, "handle.json"); r.Requests != 41980 || r.P99 != 9.87e6 || r.Duration != 30201200*time.Microsecond || r.VUs != 50 {
		t.Errorf("%+v", r)
	}
}

func TestStream(t *testing.T) {
	r := parse(t, "stream.json")
	if r.Requests != 100 || r.Failed != 1 || len(r.Latencies) != 100 || r.VUs != 1 || r.Received != 73200 || r.Started.Second() != 1 {
		t.Errorf("%+v", r)
	}
	if r.P50 < 6e6 || r.P50 > 9e6 || r.Min != slices.Min(r.Latencies) || r.P99 > r.Max || r.Rate < 100 || r.Rate > 200 {
		t.Errorf("%+v", r)
	}
	text := sample(t, "stream.json")
	cut, err := k6.Parse(text[:len(text)-100]) // it was killed as it wrote
	if err != nil || cut.Requests != 100 {
		t.Errorf("%+v, %v", cut, err)
	}
}

func TestRefused(t *testing.T) {
	if _, err := k6.Parse([]byte(`{"metrics": {}}`)); !errors.Is(err, k6.ErrNothing) {
		t.Errorf("nothing: %v", err)
	}
	var place *tool.PlaceError
	if _, err := k6.Parse([]byte("{\n\"metrics\": 1}")); !errors.As(err, &place) || place.Line != 2 {
		t.Errorf("another form: %v", err)
	}
	broken := strings.Replace(string(sample(t, "stream.json")), `"type":"Point"`, `"type":Point`, 1)
	if _, err := k6.Parse([]byte(broken)); !errors.As(err, &place) || place.Line != 2 {
		t.Errorf("a broken point: %v", err)
	}
	for _, text := range []string{"", "{}", `{"fio version": "x"}`, `{"start": {}}`} {
		if k6.Is([]byte(text)) {
			t.Errorf("%q is taken for k6's", text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"summary.json", "handle.json"} {
		f.Add(sample(f, name))
	}
	text := sample(f, "stream.json")
	f.Add(text[:1500])
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := k6.Parse(text)
		if err == nil && (r.Requests < 1 || r.Duration <= 0 || !(r.Rate > 0) || r.P50 < 0) {
			t.Errorf("%+v", r)
		}
	})
}
