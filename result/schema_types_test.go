package result_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"netdelta/internal/golden"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// schemas are the types whose documents have a schema in the repository.
func schemas() map[string]reflect.Type {
	return map[string]reflect.Type{
		"result.schema.json": reflect.TypeFor[result.Run](),
		"trial.schema.json":  reflect.TypeFor[result.Trial](),

		"comparison.schema.json": reflect.TypeFor[result.Comparison](),
		"event.schema.json":      reflect.TypeFor[result.Event](),
	}
}

// enums are the texts that a field may hold, by type and JSON key.
func enums() map[string][]any {
	verdicts := []any{"slower", "faster", "same", "unresolved"}
	roles := []any{string(result.RoleCell), string(result.RoleBaseline), string(result.RoleControl)}
	placements := []any{string(result.SameNode), string(result.CrossNode)}
	return map[string][]any{
		"Cell.role": roles, "Trial.role": roles, "Cell.placement": placements, "Delta.placement": placements,
		"Delta.better": {"lower", "higher"}, "Delta.verdict": verdicts,
		"Effect.placement": placements, "Effect.better": {"lower", "higher"}, "Effect.verdict": verdicts,
		"Claim.verdict":          {"confirmed", "confirmed in part", "contradicted", "unresolved", "not a test here", "not-tested"},
		"Goal.verdict":           {"pass", "fail", "unknown"},
		"RequestShare.placement": placements, "RequestShare.matters": {"yes", "no", "unknown"},
		"Run.ended": {"running", "resolved", "resolved in part", "budget", "builds", "interrupted", "failed", "nothing measured"},

		"Event.event": {
			result.EventRunStarted, result.EventWaiting, result.EventBuildBegun, result.EventProgress, result.EventTrialFinished, result.EventDeltas,
			result.EventRunEnded,
		},
		"EventProgressed.doing": {"preparing", "setting up", "measuring", "judging", "ending"},

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
	if t == reflect.TypeFor[result.Comparison]() {
		schema.Title = "comparison of two netdelta runs"
	}
	if t == reflect.TypeFor[result.Event]() {
		schema.Title = "event of a netdelta run that is under way"
	}
	comments, err := comments()
	if err != nil {
		return nil, err
	}
	refine(schema, t, comments)
	schema.Properties["schema"].Const = jsonschema.Ptr[any](result.Schema)
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
		if t == reflect.TypeFor[result.Params]() {
			declare(s)
		}
		for _, field := range reflect.VisibleFields(t) {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			property := s.Properties[key]
			if property == nil {
				continue // the own parameters, which stand among the others
			}
			refine(property, field.Type, comments)
			property.Enum = enums()[t.Name()+"."+key]
			owner := t
			for _, i := range field.Index[:len(field.Index)-1] {
				owner = owner.Field(i).Type // an embedded struct has the comment
			}
			if text := comments[owner.Name()+"."+field.Name]; text != "" {
				property.Description = text
			}
		}
	}
}

// comments returns the doc comments of this package's types and fields by name.
func comments() (map[string]string, error) {
	found := map[string]string{}
	for _, name := range []string{"record.go", "params.go", "environment.go", "comparison.go", "conditions.go", "trial.go", "event.go"} {
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
		schema, err := generate(name, kind)
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("..", "schema", name), string(schema))
	}
}

// declare puts the parameters that workloads declare themselves in the place of Own.
func declare(s *jsonschema.Schema) {
	delete(s.Properties, "own")
	at := slices.Index(s.PropertyOrder, "own")
	s.PropertyOrder = slices.Delete(s.PropertyOrder, at, at+1)
	for _, d := range workload.Parameters(catalogue.Workloads()) {
		kind := &jsonschema.Schema{Type: "string", Description: d.Says}
		switch d.Kind {
		case result.KindCount:
			kind.Type = "integer"
		case result.KindFlag:
			kind.Type = "boolean"
		case result.KindSize, result.KindOctets, result.KindRate, result.KindNumber, result.KindShare:
			kind.Type, kind.Minimum = "number", jsonschema.Ptr(0.0)
		}
		s.Properties[d.Key] = kind
		s.PropertyOrder = slices.Insert(s.PropertyOrder, at, d.Key)
		at++
	}
}
