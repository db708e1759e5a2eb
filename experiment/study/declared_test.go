package study_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/internal/golden"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// levelSchema is what a schema says of one level of a parameter.
func levelSchema(d result.Parameter) string {
	switch d.Key { // what a study checks beyond the declaration
	case "target":
		return `{"type": "string", "minLength": 1, "maxLength": 2048}`
	case "link.nodes":
		return `{"type": "string", "pattern": "^(none|node[0-9]+:.*)$", "examples": ["node0:2x25Gbit/s"]}`
	case "storage_class":
		return `{"$ref": "#/$defs/className"}`
	case "congestion_control":
		return `{"$ref": "#/$defs/algorithm"}`
	case "rate":
		return `{"$ref": "#/$defs/rateLevel"}`
	}
	switch d.Kind {
	case result.KindCount:
		return fmt.Sprintf(`{"type": "integer", "minimum": %d, "maximum": %d}`, int(d.Low), int(d.High))
	case result.KindNumber:
		return fmt.Sprintf(`{"type": "number", "minimum": %v, "maximum": %d}`, d.Low, int(d.High))
	case result.KindFlag:
		return `{"type": "boolean"}`
	case result.KindSize, result.KindOctets:
		return `{"$ref": "#/$defs/size"}`
	case result.KindRate:
		return `{"$ref": "#/$defs/rate"}`
	case result.KindShare:
		return `{"$ref": "#/$defs/fraction"}`
	case result.KindDuration:
		return `{"$ref": "#/$defs/duration"}`
	}
	return `{"enum": ["` + strings.Join(d.Known(), `", "`) + `"]}`
}

// levelsSchema are the keys of levels in the schema of study files.
func levelsSchema(all []result.Parameter) string {
	var keys []string
	for _, d := range all {
		if !d.Derived {
			one := levelSchema(d)
			says, _ := json.Marshal(d.Says)
			keys = append(keys, fmt.Sprintf("        %q: {\n          \"description\": %s,\n          \"anyOf\": [%s, {\"type\": \"array\", \"minItems\": 1, \"uniqueItems\": true, \"items\": %s}]\n        }", d.Key, says, one, one))
		}
	}
	return strings.Join(keys, ",\n") + "\n"
}

// The schema of study files says of parameters what they are declared as.
func TestSchemaFollowsDeclarations(t *testing.T) {
	const path = "../../schema/study.schema.json"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "    \"levels\": {\n      \"type\": \"object\",\n      \"additionalProperties\": false,\n      \"properties\": {\n", "      }\n    },\n    \"family\""
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the schema has no levels where they are looked for")
	}
	golden.Check(t, path, head+begin+levelsSchema(result.Parameters(workload.Parameters(catalogue.Workloads())...))+end+tail)
}

// A workload of a catalogue that declares a parameter of its own has it in studies, their schema, factors, IDs, headings
// and records.
func TestOwnParameterOfNewWorkload(t *testing.T) {
	declared := result.Declare(result.Parameter{
		Key: "topics", Kind: result.KindCount, Low: 1, High: 64, Default: 1, Usual: "1", Label: "% topics", Says: "Topics that messages are published to.",
	})
	broker := workload.Workload{Name: "broker", Parameters: declared, Check: func(p result.Params) error { return result.Unused(p, declared) }}
	all := append(catalogue.Workloads(), broker)
	k := study.Known{Testbeds: []string{"lab"}, Networks: []string{"host", "bridge"}}
	for _, w := range all {
		k.Workloads = append(k.Workloads, study.KnownWorkload{Name: w.Name, Defaults: w.Defaults, Parameters: w.Parameters, Check: w.Check})
	}
	const file = "study: s\nbaseline: host\nnetworks: [host, bridge]\nworkloads:\n  - broker: {topics: [1, %s]}\n"
	for level, want := range map[string]string{
		"many": `f:5:26: topics: "many" is not a whole number`, "65": "f:5:26: topics 65 is outside 1 to 64", "1": "f:5:26: topics 1 is there twice; it is already on line 5",
	} {
		if _, err := study.Parse("f", fmt.Appendf(nil, file, level), k); err == nil || err.Error() != want {
			t.Errorf("topics %s: got %v, want %s", level, err, want)
		}
	}
	if _, err := study.Parse("f", []byte("study: s\nbaseline: host\nnetworks: [host]\nworkloads:\n  - oltp: {topics: 2}\n"), k); err == nil || !strings.Contains(err.Error(), "topics") {
		t.Errorf("of another workload: %v", err)
	}
	s, err := study.Parse("f", fmt.Appendf(nil, file, "8"), k)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Override(study.Overrides{Factors: []string{"topics=4,8"}}, k); err != nil {
		t.Fatal(err)
	}
	written, err := s.Marshal()
	if err != nil || !strings.Contains(string(written), "topics: [4, 8]") {
		t.Errorf("written as %s, %v", written, err)
	}
	cells := plan.Expand(s)
	last := cells[len(cells)-1]
	if last.ID != "bridge/cross-node/broker/topics=8" {
		t.Errorf("the cell is %s", last.ID)
	}
	record, err := json.Marshal(last.Params)
	if err != nil || string(record) != `{"topics":8}` {
		t.Errorf("recorded as %s, %v", record, err)
	}
	run := result.Run{Cells: make([]result.Cell, 1)}
	if err := json.Unmarshal(record, &run.Cells[0].Params); err != nil {
		t.Fatal(err)
	}
	run.Bind(workload.Parameters(all))
	if read := run.Cells[0].Params; read != last.Params || words.Load(result.Setting{Workload: "broker", Params: read}) != "broker, 8 topics" {
		t.Errorf("read back as %+v", read)
	}
	if e, err := study.ParseExpectation("p50 of bridge above host where topics=8", declared...); err != nil || !e[0].Where[0].Holds(last) {
		t.Errorf("in a claim: %v", err)
	}
	if got := levelsSchema(declared); !strings.Contains(got, `"topics": {`) || !strings.Contains(got, `"maximum": 64`) {
		t.Errorf("in the schema: %s", got)
	}
}

// A parameter that means something at some levels of another is left out of combinations with the rest of them.
func TestOwnParameterOfSomeLevels(t *testing.T) {
	var k study.Known
	for _, w := range catalogue.Workloads() {
		k.Workloads = append(k.Workloads, study.KnownWorkload{Name: w.Name, Defaults: w.Defaults, Parameters: w.Parameters, Check: w.Check})
	}
	k.Testbeds, k.Networks = []string{"lab"}, []string{"host"}
	const file = "study: s\nbaseline: host\nnetworks: [host]\nworkloads:\n  - block: {operation: [%s], reads: [0.3, 0.7]}\n"
	s, err := study.Parse("f", fmt.Appendf(nil, file, "randread, randrw"), k)
	if err != nil {
		t.Fatal(err)
	}
	var shares []float64
	for _, p := range s.Combinations(s.Workloads[0]) {
		shares = append(shares, p.Own.Share("reads"))
	}
	if !slices.Equal(shares, []float64{0, 0.3, 0.7}) {
		t.Errorf("the shares are %v", shares)
	}
	const want = "f:5:43: reads changes nothing: there is no operation that it could be of; name one that mixes reads and writes: operation: [randrw]"
	if _, err := study.Parse("f", fmt.Appendf(nil, file, "randread"), k); err == nil || err.Error() != want {
		t.Errorf("reads of reads alone: got %v, want %s", err, want)
	}
}
