package result

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	checker "github.com/santhosh-tekuri/jsonschema/v6"

	"netdelta/unit"
)

// compile reads a committed schema with a checker that shares no code with the generator.
func compile(t *testing.T, name string) *checker.Schema {
	t.Helper()
	schema, err := checker.NewCompiler().Compile(filepath.Join("..", "schema", name))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// check holds a JSON document against a schema.
func check(schema *checker.Schema, document []byte) error {
	value, err := checker.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// fullRun is a run with something in each of its lists.
func fullRun() Run {
	low, p := 1.19, 0.001
	return Run{
		Schema: Schema, Run: "20300102-030405", Study: "latency", Testbed: "lab", Seed: math.MaxUint64,
		Started: time.Unix(0, 0).UTC(), Confidence: 0.95, Margin: 0.02, Ended: "budget",
		Environment: Environment{Kernel: "6.18", Memory: 8 * unit.GiB, Links: []Link{{Name: "eth0", Offloads: map[string]bool{"tso": true}}}},
		Cells: []Cell{{
			ID: "c", Network: "vxlan", Placement: CrossNode, Path: "pod", Workload: "tcp-rr", Role: RoleCell,
			Params: Params{Message: 300, Connections: 2, Rate: unit.Gbit, MTU: 1500},
		}},
		Deltas: []Delta{{
			Cell: "c", Network: "vxlan", Setting: Setting{Placement: SameNode}, Better: "lower", Judgement: Judgement{Ratio: 1.2, RatioLow: &low, P: &p,
				Verdict: "slower"}, Variance: &Variance{Builds: 0.005},
		}},
		Null:   []Delta{{Better: "higher", Setting: Setting{Placement: CrossNode}, Judgement: Judgement{Verdict: "same", Excluded: map[string]int{"steal": 2}}}},
		Checks: []Check{{Trial: "c#0", Check: "pressure", OK: true}},
		Claims: []Claim{{ID: "x", Verdict: "not-tested"}},
		Advice: []Advice{{Says: "raise the MTU", Why: "it helped"}},
	}
}

func TestDocumentsMatchTheirSchemas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	folder, err := Create(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	trials, results := compile(t, "trial.schema.json"), compile(t, "result.schema.json")
	for _, run := range []Run{fullRun(), {Schema: Schema, Ended: "running"}} {
		if err := folder.WriteResult(run); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, ResultFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := check(results, data); err != nil {
			t.Errorf("%v\n%s", err, data)
		}
	}
	for _, trial := range []Trial{sampleTrial(0), {Cell: "c", Role: RoleBaseline, Failed: "no reply"}} {
		line, err := encodeTrial(trial)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(trials, line); err != nil {
			t.Errorf("%v\n%s", err, line)
		}
	}
}

func TestSchemasRefuse(t *testing.T) {
	run, err := json.Marshal(fullRun().Complete())
	if err != nil {
		t.Fatal(err)
	}
	trial, err := encodeTrial(sampleTrial(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		schema   string
		document []byte
		old, new string
	}{
		{"result.schema.json", run, `"schema":1`, `"schema":2`},
		{"result.schema.json", run, `"verdict":"slower"`, `"verdict":"slow"`},
		{"result.schema.json", run, `"claims":[`, `"claims":null,"x":[`},
		{"result.schema.json", run, `"seed":`, `"sown":`},
		{"trial.schema.json", trial, `"role":"cell"`, `"role":"king"`},
		{"trial.schema.json", trial, `"round":[0,1,2]`, `"round":null`},
		{"trial.schema.json", trial, `"build":0`, `"build":"0"`},
	} {
		broken := bytes.Replace(tc.document, []byte(tc.old), []byte(tc.new), 1)
		if bytes.Equal(broken, tc.document) {
			t.Fatalf("%s is not in the document", tc.old)
		}
		if err := check(compile(t, tc.schema), broken); err == nil {
			t.Errorf("%s accepts %s", tc.schema, tc.new)
		}
	}
}
