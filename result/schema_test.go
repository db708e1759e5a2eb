package result

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	checker "github.com/santhosh-tekuri/jsonschema/v6"

	"netdelta/unit"
)

var update = flag.Bool("update", false, "write the schemas anew")

// schemas are the types whose documents have a schema in the repository.
func schemas() map[string]reflect.Type {
	return map[string]reflect.Type{
		"result.schema.json": reflect.TypeFor[Run](),
		"trial.schema.json":  reflect.TypeFor[Trial](),

		"comparison.schema.json": reflect.TypeFor[Comparison](),
	}
}

// enums are the texts that a field may hold, by type and JSON key.
func enums() map[string][]any {
	verdicts := []any{"slower", "faster", "same", "unresolved"}
	roles := []any{string(RoleCell), string(RoleBaseline), string(RoleTwin)}
	placements := []any{string(SameNode), string(CrossNode)}
	return map[string][]any{
		"Cell.role": roles, "Trial.role": roles, "Cell.placement": placements, "Delta.placement": placements,
		"Delta.better": {"lower", "higher"}, "Delta.verdict": verdicts,
		"Effect.placement": placements, "Effect.better": {"lower", "higher"}, "Effect.verdict": verdicts,
		"Claim.verdict": {"confirmed", "contradicted", "unresolved", "not-tested"},
		"Run.ended":     {"running", "resolved", "budget", "builds", "interrupted", "failed"},

		"Comparison.verdict": {"regressed", "unresolved", "improved", "same", "nothing"},
		"Change.verdict":     {"regressed", "improved", "same", "unresolved"}, "Change.better": {"lower", "higher"},
		"Change.placement": placements, "BaselineChange.placement": placements, "Unpaired.placement": placements,
		"Unpaired.in": {"old", "new"}, "Difference.group": {"machine", "kernel", "program", "testbed", "settings", "study"},
	}
}

// generate returns the schema of a record as it is committed.
func generate(name string, t reflect.Type) ([]byte, error) {
	kinds := map[reflect.Type]*jsonschema.Schema{}
	for _, quantity := range []any{unit.Bytes(1500), unit.BitsPerSecond(1e9)} {
		kind, err := kindOf(quantity)
		if err != nil {
			return nil, err
		}
		kinds[reflect.TypeOf(quantity)] = kind
	}
	schema, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: kinds})
	if err != nil {
		return nil, err
	}
	schema.Schema = "https://json-schema.org/draft/2020-12/schema"
	schema.Title = strings.TrimSuffix(name, ".schema.json") + " of a netdelta run"
	if t == reflect.TypeFor[Comparison]() {
		schema.Title = "comparison of two netdelta runs"
	}
	comments, err := comments()
	if err != nil {
		return nil, err
	}
	refine(schema, t, comments)
	schema.Properties["schema"].Const = jsonschema.Ptr[any](Schema)
	data, err := json.MarshalIndent(schema, "", "  ")
	return append(data, '\n'), err
}

// kindOf is the JSON type that a quantity is written as.
func kindOf(quantity any) (*jsonschema.Schema, error) {
	data, err := json.Marshal(quantity)
	if err != nil {
		return nil, err
	}
	if data[0] == '"' {
		return &jsonschema.Schema{Type: "string"}, nil
	}
	return &jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0)}, nil
}

// refine adds to an inferred schema what the Go types don't tell: lists that are never null, the texts allowed, and the
// doc comments. Objects stay open, since fields may be added within a version.
func refine(s *jsonschema.Schema, t reflect.Type, comments map[string]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1], nil
	}
	switch {
	case t.Kind() == reflect.Slice:
		refine(s.Items, t.Elem(), comments)
	case t.Kind() == reflect.Struct && s.Properties != nil:
		s.AdditionalProperties = nil
		s.Description = comments[t.Name()]
		for field := range t.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property := s.Properties[key]
			refine(property, field.Type, comments)
			property.Enum = enums()[t.Name()+"."+key]
			if text := comments[t.Name()+"."+field.Name]; text != "" {
				property.Description = text
			}
		}
	}
}

// comments returns the doc comments of this package's types and fields by name.
func comments() (map[string]string, error) {
	found := map[string]string{}
	for _, name := range []string{"record.go", "environment.go", "comparison.go", "conditions.go", "effect.go", "exact.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			decl, ok := n.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				return true
			}
			spec := decl.Specs[0].(*ast.TypeSpec)
			found[spec.Name.Name] = sentence(decl.Doc)
			if structure, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range structure.Fields.List {
					for _, name := range field.Names {
						found[spec.Name.Name+"."+name.Name] = sentence(field.Doc) + sentence(field.Comment)
					}
				}
			}
			return false
		})
	}
	return found, nil
}

// sentence is a comment on one line.
func sentence(group *ast.CommentGroup) string { return strings.Join(strings.Fields(group.Text()), " ") }

func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	for name, kind := range schemas() {
		want, err := generate(name, kind)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "schema", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types say; look at the difference after: go test ./result -run Schemas -update", path)
		}
	}
}

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
			Cell: "c", Network: "vxlan", Placement: SameNode, Better: "lower", Ratio: 1.2, RatioLow: &low, P: &p,
			Verdict: "slower", Variance: &Variance{Builds: 0.005},
		}},
		Null:   []Delta{{Better: "higher", Placement: CrossNode, Verdict: "same", Excluded: map[string]int{"steal": 2}}},
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
