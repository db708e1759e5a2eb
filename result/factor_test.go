package result

import (
	"reflect"
	"slices"
	"testing"
)

// Every field of Params is either part of the load or of exactly one factor: one that is added must be added there as well.
func TestFactorsHoldAllParameters(t *testing.T) {
	load := []string{"Message", "Connections", "Rate", "RequestRate", "Search", "File", "Reconnect", "Own", "Clients", "Target"}
	isLoad := map[string]bool{}
	for _, name := range load {
		isLoad[name] = true
	}
	check := func(name string, set Params) {
		if set.Conditions != set.Conditions.Plain() {
			t.Fatalf("%s: %+v is not plain", name, set.Conditions)
		}
		if own := set.Load() == set; own != isLoad[name] {
			t.Errorf("%s is part of the load: %v", name, own)
		}
		var of []string
		for _, f := range Factors() {
			if set.Without(f) != set {
				of = append(of, f)
			}
			if changed := set.Level(f) != (Params{}).Level(f); changed != (set.Without(f) != set) {
				t.Errorf("%s: the level of %s is %q", name, f, set.Level(f))
			}
		}
		if want := 1; isLoad[name] && len(of) > 0 || !isLoad[name] && len(of) != want {
			t.Errorf("%s is of the factors %q", name, of)
		}
	}
	for f := range reflect.TypeFor[Params]().Fields() {
		if f.Name == "Conditions" {
			continue
		}
		var p Params
		give(reflect.ValueOf(&p).Elem().FieldByIndex(f.Index))
		check(f.Name, p)
	}
	for f := range reflect.TypeFor[Conditions]().Fields() {
		// What means nothing alone is there together with what it belongs to.
		p := Params{Conditions: map[string]Conditions{
			"BondMode": {LinkCount: 2}, "BondHash": {LinkCount: 2}, "PolicyRules": {Policy: PolicyEBPF}, "PolicyPods": {Policy: PolicyKubernetes}, "Services": {Service: ServiceEBPF},
		}[f.Name]}
		give(reflect.ValueOf(&p.Conditions).Elem().FieldByIndex(f.Index))
		p.Conditions = p.Conditions.Plain()
		check(f.Name, p)
	}
}

// give sets a field to something that it usually is not.
func give(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[Own]():
		v.Set(reflect.ValueOf(OwnOf("mix", "x")))
	case v.CanInt():
		v.SetInt(77)
	case v.CanFloat():
		v.SetFloat(0.25)
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		v.SetString("x")
	}
}

// A regime stands for processors and a rate: it reads what it has set, and leaves nothing behind.
func TestRegimeStandsForProcessorsAndRate(t *testing.T) {
	var d Parameter
	for _, p := range Parameters() {
		if p.Stands {
			d = p
		}
	}
	asked := Params{Message: 300, RequestRate: 1000}
	for regime, want := range map[string]Params{
		RegimeSaturated: {Message: 300, CPU: "same"}, RegimeWaking: {Message: 300, CPU: "two"},
		RegimePaced: {Message: 300, CPU: "two", RequestRate: 1000}, "": {Message: 300},
	} {
		got := asked.With(d, regime)
		if got != want || got.Get(d) != any(regime) {
			t.Errorf("%q makes %+v, which is %q", regime, got, got.Get(d))
		}
	}
	if free := (Params{CPU: "any"}); free.Given(d) {
		t.Error("ends that the kernel places have a regime")
	}
	names := Params{CPU: "two", RequestRate: 1000}.Names()
	if !slices.Equal(names, []string{"rps=1000", "cpu=two"}) {
		t.Errorf("the ID of a cell says %q", names)
	}
}
