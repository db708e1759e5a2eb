package rows

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// columns are the names of a row's columns.
func columns(row reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(row) {
		if f.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		names = append(names, name)
	}
	return names
}

// Every table has columns with names of its own, in small letters, and of types that a file can hold.
func TestColumns(t *testing.T) {
	held := []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[int64](), reflect.TypeFor[float64](), reflect.TypeFor[time.Time](),
		reflect.TypeFor[[]string](), reflect.TypeFor[map[string]int64](),
	}
	for _, row := range []reflect.Type{
		reflect.TypeFor[Delta](), reflect.TypeFor[Effect](), reflect.TypeFor[Trial](), reflect.TypeFor[Burst](), reflect.TypeFor[Check](), reflect.TypeFor[Claim](),
	} {
		names := columns(row)
		seen := map[string]bool{}
		for _, name := range names {
			if name == "" || name != strings.ToLower(name) || seen[name] {
				t.Errorf("%s has a column %q, twice: %v", row, name, seen[name])
			}
			seen[name] = true
		}
		if names[0] != "run" {
			t.Errorf("%s begins with %s, not with the run", row, names[0])
		}
		for _, f := range reflect.VisibleFields(row) {
			kind := f.Type
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			if !f.Anonymous && !slices.Contains(held, kind) {
				t.Errorf("%s.%s is a %s", row, f.Name, f.Type)
			}
		}
	}
}

// What a burst or a delta or a cell's parameters hold is in the tables: a field that is added there must be added here.
func TestTablesAreComplete(t *testing.T) {
	for _, c := range []struct {
		record, row reflect.Type
		elsewhere   []string
	}{
		{reflect.TypeFor[result.Bursts](), reflect.TypeFor[Burst](), nil},
		{reflect.TypeFor[result.Delta](), reflect.TypeFor[Delta](), []string{"Params", "Variance", "Across", "Within"}},
		{reflect.TypeFor[result.Effect](), reflect.TypeFor[Effect](), []string{"Params", "Across"}},
		{reflect.TypeFor[result.Params](), reflect.TypeFor[Level](), []string{"Own"}},
		{reflect.TypeFor[result.Conditions](), reflect.TypeFor[Conditions](), nil},
		{reflect.TypeFor[result.Check](), reflect.TypeFor[Check](), nil},
		{reflect.TypeFor[result.Claim](), reflect.TypeFor[Claim](), nil},
	} {
		for _, f := range reflect.VisibleFields(c.record) { // also fields of an embedded Setting
			if f.Anonymous || slices.Contains(c.elsewhere, f.Name) {
				continue
			}
			if _, found := c.row.FieldByName(f.Name); !found {
				t.Errorf("%s is in %s and has no column in %s", f.Name, c.record, c.row)
			}
		}
	}
}

// What workloads declare themselves is in the tables too, and the states that a delta is across.
func TestOwnParametersComeToTheirColumns(t *testing.T) {
	for _, d := range workload.Parameters(catalogue.Workloads()) {
		if d.Field != "" || d.Stands {
			continue
		}
		var value any
		switch d.Kind {
		case result.KindWord:
			value = "some"
		case result.KindCount:
			value = 77
		case result.KindShare:
			value = 0.77
		case result.KindSize:
			value = unit.Bytes(77)
		default:
			t.Fatalf("%s is of a kind that this test does not know", d.Key)
		}
		with, without := level("r", result.Cell{Params: result.Params{Own: result.OwnOf(d.Key, value)}}), level("r", result.Cell{})
		if with == without {
			t.Errorf("%s has no column", d.Key)
		}
	}
	d := delta("r", result.Delta{Across: &result.Across{State: "vxlan", Baseline: "host-gw", Reference: "host"}}, false)
	if d.States != (States{"vxlan", "host-gw", "host"}) {
		t.Errorf("the states are %+v", d.States)
	}
}

// Each value goes to its own column: a record whose fields all differ is found again.
func TestValuesComeToTheirColumns(t *testing.T) {
	b := result.Bursts{Round: []int{7}, Disturbed: []string{"steal"}}
	number := 100.0
	for f := range reflect.TypeFor[result.Bursts]().Fields() {
		field := reflect.ValueOf(&b).Elem().FieldByIndex(f.Index)
		number++
		switch column := field.Addr().Interface().(type) {
		case *[]int64:
			*column = []int64{int64(number)}
		case *[]float64:
			*column = []float64{number}
		}
	}
	run := result.Run{Run: "r", Cells: []result.Cell{{ID: "c", Network: "vxlan", Params: result.Params{Message: 300}}}}
	all := slices.Collect(Bursts(run, result.List{{Cell: "c", Build: 3, Bursts: b}}))
	if len(all) != 1 || all[0].Network != "vxlan" || all[0].Message != 300 || all[0].Build != 3 || all[0].Round != 7 || all[0].Disturbed != "steal" {
		t.Fatalf("%+v", all)
	}
	got := reflect.ValueOf(all[0])
	number = 100
	for f := range reflect.TypeFor[result.Bursts]().Fields() {
		number++
		if f.Type.Elem().Kind() != reflect.Int64 && f.Type.Elem().Kind() != reflect.Float64 {
			continue
		}
		value := reflect.Indirect(got.FieldByName(f.Name))
		if !value.IsValid() {
			t.Errorf("%s has no column", f.Name)
			continue
		}
		if value.Convert(reflect.TypeFor[float64]()).Float() != number {
			t.Errorf("%s is %v, want %v", f.Name, value, number)
		}
	}
}

func TestWhatIsMissingIsNull(t *testing.T) {
	run := result.Run{Run: "r", Deltas: []result.Delta{{Metric: "loss", Judgement: result.Judgement{Difference: 0.1}}}}
	for d := range Deltas(run) {
		if d.Ratio != nil || d.RatioLow != nil || d.P != nil || d.SDBuilds != nil || d.Null {
			t.Errorf("%+v", d)
		}
	}
	trials := result.List{{Cell: "gone", Failed: "no reply", Histogram: "not one", Bursts: result.Bursts{Round: []int{0}}}}
	for tr := range Trials(run, trials) {
		if tr.P50 != nil || tr.Retransmits != nil || tr.PathOK != nil || tr.Cell != "gone" || tr.Failed != "no reply" {
			t.Errorf("%+v", tr)
		}
	}
	for b := range Bursts(run, trials) {
		if b.P50 != nil || b.Transactions != nil || b.Start != 0 || b.Cell != "gone" {
			t.Errorf("%+v", b)
		}
	}
}

func TestTrialsHaveTheirPercentiles(t *testing.T) {
	h := result.NewHistogram()
	for ns := range int64(1000) {
		if err := h.RecordValue(1000 + ns); err != nil {
			t.Fatal(err)
		}
	}
	text, err := result.EncodeHistogram(h)
	if err != nil {
		t.Fatal(err)
	}
	tr := result.Trial{
		Cell: "c", Histogram: text, TCP: &result.TCPInfo{Retransmits: 3, CongestionControl: "bbr"}, Path: &result.Path{Findings: []string{"stray"}},
		Bursts: result.Bursts{Round: []int{0, 1, 2}, Disturbed: []string{"", "steal", ""}},
	}
	for row := range Trials(result.Run{}, result.List{tr}) {
		if *row.P50 < 1495 || *row.P50 > 1505 || *row.P99 < 1985 || *row.Max < 1998 || *row.Retransmits != 3 || *row.Congestion != "bbr" {
			t.Errorf("%+v", row)
		}
		if *row.PathOK || len(row.PathFindings) != 1 || row.Bursts != 3 || row.Disturbed != 1 {
			t.Errorf("%+v", row)
		}
	}
}
