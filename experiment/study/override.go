package study

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Overrides are what flags change of a study. An empty list or nil pointer leaves the study as it is.
type Overrides struct {
	// Networks replaces the study's networks; the baseline takes part in any case, and is put first when it is not listed.
	Networks []string
	// Baseline replaces the study's baseline.
	Baseline string
	// Workloads replaces the study's workloads: one that the study has keeps its entries, another one has its defaults.
	Workloads  []string
	Placement  []string
	TimeBudget *time.Duration
	Burst      *time.Duration
	Builds     *int
	Rounds     *int
	Blocks     *int
	Seed       *uint64
	// MTU replaces the MTU of the links (one level), or makes it a factor (several).
	MTU []unit.Bytes
	// Family replaces the versions of IP of all workloads; several make it a factor.
	Family []string
	// Target replaces the endpoints of the user's own that all workloads are measured against: URLs without passwords.
	Target []string
	// StorageClass replaces the classes of a cluster's volumes that all workloads keep their blocks in.
	StorageClass []string
	// Factors replace the levels of one parameter each, of all workloads: "policy=none,nftables".
	Factors []string
}

// Override returns a copy of the study with the flags applied, checked as a file is. Its errors have the flag as their
// place. s is left as it is.
func (s *Study) Override(o Overrides, known Known) (*Study, error) {
	n, known := s.Clone(), known.of(s.Testbed.Kind)
	flags := map[string]Place{"": {File: "study " + s.Name}}
	set := func(path, flag string) { flags[path] = Place{Flag: flag} }
	if o.Baseline != "" {
		set("baseline", "--baseline")
		n.Baseline = o.Baseline
	}
	if len(o.Networks) > 0 {
		set("networks", "--networks")
		n.Networks = trimmed(o.Networks)
		n.Changes = slices.DeleteFunc(n.Changes, func(c testbed.Change) bool { return !slices.Contains(n.Networks, c.Network) })
	}
	if !slices.Contains(n.Networks, n.Baseline) && slices.Contains(known.Networks, n.Baseline) {
		n.Networks = append([]string{n.Baseline}, n.Networks...)
	}
	if len(o.Workloads) > 0 {
		set("workloads", "--workloads")
		n.Workloads = s.pick(trimmed(o.Workloads))
		n.ask(s)
	}
	if len(o.Placement) > 0 {
		set("placement", "--placement")
		n.Placement = nil
		for _, p := range trimmed(o.Placement) {
			n.Placement = append(n.Placement, result.Placement(p))
		}
	}
	n.Design.override(o, set)
	n.mtu(o.MTU, set)
	n.families(trimmed(o.Family), set)
	if len(o.Target) > 0 {
		set("factors.target", "--target")
		n.common(&n.Factors.Target, o.Target, func(l *Levels) *[]string { return &l.Target })
	}
	if len(o.StorageClass) > 0 {
		set("factors.storage_class", "--storage-class")
		n.common(&n.Factors.StorageClass, trimmed(o.StorageClass), func(l *Levels) *[]string { return &l.StorageClass })
	}
	if err := n.factors(o.Factors, set).sorted(); err != nil {
		return nil, err
	}
	c := &checker{
		study: n, known: known,
		at:     func(path string) Place { return nearestPlace(flags, path) },
		bad:    func(string) bool { return false },
		within: func(string, string, int) (Place, bool) { return Place{}, false },
		given: func(path string) bool {
			// Keys without which a study can't be are there; of optional ones, those that a flag has set.
			_, ok := flags[path]
			return ok || !strings.Contains(path, ".")
		},
	}
	c.check()
	if err := c.errs.sorted(); err != nil {
		return nil, err
	}
	return n, nil
}

func (d *Design) override(o Overrides, set func(path, flag string)) {
	if o.TimeBudget != nil {
		set("design.time_budget", "--time-budget")
		d.TimeBudget = *o.TimeBudget
	}
	if o.Burst != nil {
		set("design.burst", "--burst")
		d.Burst = *o.Burst
	}
	if o.Builds != nil {
		set("design.builds", "--builds")
		d.Builds = *o.Builds
	}
	if o.Rounds != nil {
		set("design.rounds", "--rounds")
		d.Rounds = *o.Rounds
	}
	if o.Blocks != nil {
		set("design.blocks", "--blocks")
		d.Blocks = *o.Blocks
	}
	if o.Seed != nil {
		set("design.seed", "--seed")
		d.Seed = *o.Seed
	}
}

// mtu makes the links carry the largest MTU; more than one becomes a factor.
func (s *Study) mtu(levels []unit.Bytes, set func(path, flag string)) {
	if len(levels) == 0 {
		return
	}
	set("testbed.link.mtu", "--mtu")
	set("factors.mtu", "--mtu")
	s.Testbed.Link.MTU = slices.Max(levels)
	s.Factors.MTU = nil
	if len(levels) > 1 {
		s.Factors.MTU = slices.Clone(levels)
	}
	for i := range s.Workloads {
		s.Workloads[i].Levels.MTU = nil
	}
	s.merge()
}

// families has every workload run under these versions of IP.
func (s *Study) families(levels []string, set func(path, flag string)) {
	if len(levels) == 0 {
		return
	}
	set("factors.family", "--family")
	s.Factors.Family = nil
	for _, f := range levels {
		s.Factors.Family = append(s.Factors.Family, result.Family(f))
	}
	for i := range s.Workloads {
		s.Workloads[i].Levels.Family = nil
	}
	s.merge()
}

// common gives all workloads the same levels of a factor, in place of those that they have of their own.
func (s *Study) common(factor *[]string, levels []string, own func(*Levels) *[]string) {
	*factor = slices.Clone(levels)
	for i := range s.Workloads {
		*own(&s.Workloads[i].Levels) = nil
	}
	s.merge()
}

// factors gives all workloads the levels of --factor KEY=LEVEL,LEVEL.
func (s *Study) factors(given []string, set func(path, flag string)) (errs Errors) {
	seen := map[string]bool{}
	for _, text := range given {
		key, values, ok := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		fail := func(problem, mend string) {
			errs = append(errs, &Error{Place: Place{Flag: "--factor"}, Problem: problem, Mend: mend})
		}
		p, known := parameterOf(key)
		switch {
		case !ok:
			fail(printed(text)+" gives no levels", "write --factor KEY=LEVEL,LEVEL, for example policy=none,nftables")
			continue
		case !known:
			fail("unknown factor "+printed(key), suggest(key, parameterNames()))
			continue
		case seen[key]:
			fail(key+" is there twice", "give all its levels at once: --factor "+key+"=A,B")
			continue
		}
		seen[key] = true
		flag := "--factor " + key
		if err := s.factor(p, trimmed(strings.Split(values, ",")), flag, set); err != nil {
			errs = append(errs, &Error{Place: Place{Flag: flag}, Problem: err.Error()})
		}
	}
	return errs
}

// factor gives all workloads these levels of one parameter.
func (s *Study) factor(p parameter, texts []string, flag string, set func(path, flag string)) error {
	if p.name() == "mtu" {
		var l Levels
		err := p.replace(&l, texts)
		s.mtu(l.MTU, func(path, _ string) { set(path, flag) })
		return err
	}
	set("factors."+p.name(), flag)
	for i := range s.Workloads {
		p.clear(&s.Workloads[i].Levels)
	}
	s.merge()
	return p.replace(&s.Factors, texts)
}

// pick returns the workloads of these names with the study's levels.
func (s *Study) pick(names []string) []Workload {
	var picked []Workload
	for _, name := range names {
		before := len(picked)
		for _, w := range s.Workloads {
			if w.Name == name {
				picked = append(picked, Workload{Name: name, Levels: w.Levels.Clone()})
			}
		}
		if len(picked) == before {
			picked = append(picked, Workload{Name: name})
		}
	}
	return picked
}

// ask gives a study the question of its own workloads where it has none of those that the question was about: then it tests no claim of
// that study either.
func (s *Study) ask(about *Study) {
	var names []string
	for _, w := range s.Workloads {
		if slices.ContainsFunc(about.Workloads, func(o Workload) bool { return o.Name == w.Name }) {
			return
		}
		if !slices.Contains(names, w.Name) {
			names = append(names, w.Name)
		}
	}
	s.Question, s.Claims = "What does each container network cost "+strings.Join(names, " and ")+"?", nil
}

// merge leaves out entries of workloads that differed in what a flag has made the same.
func (s *Study) merge() {
	all := s.Workloads
	s.Workloads = nil
	for _, w := range all {
		same := func(o Workload) bool { return o.Name == w.Name && reflect.DeepEqual(o.Levels, w.Levels) }
		if !slices.ContainsFunc(s.Workloads, same) {
			s.Workloads = append(s.Workloads, w)
		}
	}
}

func trimmed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.TrimSpace(n)
	}
	return out
}

// Clone returns a copy that shares no memory with s.
func (s *Study) Clone() *Study {
	c := *s
	c.Networks = slices.Clone(s.Networks)
	c.Changes = slices.Clone(s.Changes)
	c.Placement = slices.Clone(s.Placement)
	c.Claims = slices.Clone(s.Claims)
	c.Factors = s.Factors.Clone()
	c.Workloads = nil
	for _, w := range s.Workloads {
		c.Workloads = append(c.Workloads, Workload{Name: w.Name, Levels: w.Levels.Clone()})
	}
	return &c
}
