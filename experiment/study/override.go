package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/internal/gather"
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
	// Goals are added to the study's.
	Goals []string
	// Factors replace the levels of one parameter each, of all workloads: "policy=none,nftables".
	Factors []string
}

// Override returns a copy of the study with the flags applied, checked as a file is. Its errors have the flag as their
// place. s is left as it is.
func (s *Study) Override(o Overrides, known Known) (*Study, error) {
	n, kinds, known := s.Clone(), known.On, known.of(s.Testbed.Kind)
	flags := map[string]Position{"": {File: "study " + s.Name}}
	set := func(path, flag string) { flags[path] = Position{Flag: flag} }
	if o.Baseline != "" {
		set("baseline", "--baseline")
		n.Baseline = o.Baseline
	}
	if len(o.Networks) > 0 {
		set("networks", "--networks")
		n.Networks = trimmed(o.Networks)
		// A goal of the study about a network that is left out has nothing to hold of.
		n.Goals = slices.DeleteFunc(n.Goals, func(goal string) bool {
			g, err := ParseGoal(goal)
			return err == nil && g.Network != "*" && !slices.Contains(n.Networks, g.Network)
		})
		n.Changes = slices.DeleteFunc(n.Changes, func(c testbed.Change) bool {
			return !slices.Contains(n.Networks, c.Network) && !strings.Contains(c.Network, "=")
		})
	}
	if !slices.Contains(n.Networks, n.Baseline) && slices.Contains(known.Networks, n.Baseline) {
		n.Networks = append([]string{n.Baseline}, n.Networks...)
	}
	if len(o.Workloads) > 0 {
		set("workloads", "--workloads")
		n.Named, n.Workloads = true, s.pick(trimmed(o.Workloads))
		n.ask(s)
	}
	if len(o.Placement) > 0 {
		set("placement", "--placement")
		n.Placement = nil
		for _, p := range trimmed(o.Placement) {
			n.Placement = append(n.Placement, result.Placement(p))
		}
	}
	if len(o.Goals) > 0 {
		set("goals", "--fail-if")
		n.Goals = append(n.Goals, o.Goals...)
	}
	n.Design.override(o, set)
	n.mtu(untyped(o.MTU), set)
	for _, words := range []struct {
		key, flag string
		levels    []string
	}{
		{"family", "--family", trimmed(o.Family)}, {"target", "--target", o.Target}, {"storage_class", "--storage-class", trimmed(o.StorageClass)},
	} {
		if len(words.levels) > 0 {
			set("factors."+words.key, words.flag)
			n.common(words.key, untyped(words.levels))
		}
	}
	if err := n.factors(o.Factors, set).sorted(); err != nil {
		return nil, err
	}
	c := &checker{
		study: n, known: known, kinds: kinds,
		at:     func(path string) Position { return nearestPlace(flags, path) },
		bad:    func(string) bool { return false },
		within: func(string, string, int) (Position, bool) { return Position{}, false },
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
	replace(&d.TimeBudget, o.TimeBudget, "time_budget", set)
	replace(&d.Burst, o.Burst, "burst", set)
	replace(&d.Builds, o.Builds, "builds", set)
	replace(&d.Rounds, o.Rounds, "rounds", set)
	replace(&d.Blocks, o.Blocks, "blocks", set)
	if o.Builds != nil && o.Blocks == nil && d.Blocks > 0 {
		d.Blocks = *o.Builds // each block is a build
	}
	replace(&d.Seed, o.Seed, "seed", set)
}

// replace gives a key of the design the value of its flag, nil for none.
func replace[T any](to, flag *T, key string, set func(path, flag string)) {
	if flag != nil {
		set("design."+key, "--"+strings.ReplaceAll(key, "_", "-"))
		*to = *flag
	}
}

// mtu makes the links carry the largest MTU. It becomes a factor if there is more than one, or if the study has levels of it, which its
// claims and other runs of it speak of.
func (s *Study) mtu(levels []any, set func(path, flag string)) {
	if len(levels) == 0 {
		return
	}
	set("testbed.link.mtu", "--mtu")
	set("factors.mtu", "--mtu")
	s.Testbed.Link.MTU = 0
	for _, v := range levels {
		s.Testbed.Link.MTU = max(s.Testbed.Link.MTU, v.(unit.Bytes))
	}
	if len(levels) == 1 && !s.varies("mtu") {
		levels = nil
	}
	s.common("mtu", levels)
}

// varies says whether the study gives levels of a factor.
func (s *Study) varies(key string) bool {
	return len(s.Factors[key]) > 0 || slices.ContainsFunc(s.Workloads, func(w Workload) bool { return len(w.Levels[key]) > 0 })
}

// common gives all workloads the same levels of a factor, in place of their own. A regime says on which processors the ends are, so that
// levels of cpu give way to it, and it to them.
func (s *Study) common(key string, levels []any) {
	replaced := []string{key}
	if d, known := parameterOf(s.parameters(), "regime"); known && (key == d.Key || key == d.Excludes.Key) {
		replaced = []string{d.Key, d.Excludes.Key}
	}
	for _, gone := range replaced {
		delete(s.Factors, gone)
		for _, w := range s.Workloads {
			delete(w.Levels, gone)
		}
	}
	s.Factors = Levels{key: levels}.Join(s.Factors)
	for i, w := range s.Workloads {
		s.Workloads[i].Levels = w.Levels.Join(nil)
	}
	s.merge()
}

func untyped[T any](values []T) []any {
	return gather.Each(values, func(v T) any { return v })
}

// factors gives all workloads the levels of --factor KEY=LEVEL,LEVEL.
func (s *Study) factors(given []string, set func(path, flag string)) (errs Errors) {
	seen := map[string]bool{}
	for _, text := range given {
		key, values, ok := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		fail := func(problem, fix string) {
			errs = append(errs, &Error{Position: Position{Flag: "--factor"}, Problem: problem, Fix: fix})
		}
		d, known := parameterOf(s.parameters(), key)
		switch {
		case !ok:
			fail(printed(text)+" gives no levels", "write --factor KEY=LEVEL,LEVEL, for example policy=none,nftables")
			continue
		case !known:
			fail("unknown factor "+printed(key), suggest(key, keysOf(s.parameters())))
			continue
		case seen[key]:
			fail(key+" is there twice", "give all its levels at once: --factor "+key+"=A,B")
			continue
		}
		seen[key] = true
		flag := "--factor " + key
		if err := s.factor(d, trimmed(strings.Split(values, ",")), flag, set); err != nil {
			errs = append(errs, &Error{Position: Position{Flag: flag}, Problem: err.Error()})
		}
	}
	return errs
}

// factor gives all workloads these levels of one parameter.
func (s *Study) factor(d result.Parameter, texts []string, flag string, set func(path, flag string)) error {
	var levels []any
	for _, text := range texts {
		v, err := parse(d, text)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Key, err)
		}
		levels = append(levels, v)
	}
	if d.Key == "mtu" {
		s.mtu(levels, func(path, _ string) { set(path, flag) })
		return nil
	}
	set("factors."+d.Key, flag)
	s.common(d.Key, levels)
	return nil
}

// pick returns the workloads of these names with the study's levels.
func (s *Study) pick(names []string) []Workload {
	var picked []Workload
	for _, name := range names {
		before := len(picked)
		for _, w := range s.Workloads {
			if w.Name == name {
				picked = append(picked, Workload{Name: name, Levels: w.Levels.Join(nil)})
			}
		}
		if len(picked) == before {
			picked = append(picked, Workload{Name: name})
		}
	}
	return picked
}

// ask gives a study a question about its own workloads if it has no workload of the study that the question was about. It then drops
// the claims too.
func (s *Study) ask(about *Study) {
	var names []string
	for _, w := range s.Workloads {
		if slices.ContainsFunc(about.Workloads, func(o Workload) bool { return o.Name == w.Name }) {
			return
		}
		names = gather.Once(names, w.Name)
	}
	s.Question, s.Claims = "What does each container network cost "+strings.Join(names, " and ")+"?", nil
}

// merge leaves out entries of workloads that add nothing to earlier ones since a flag has made them the same.
func (s *Study) merge() {
	all := s.Workloads
	s.Workloads = nil
	for _, w := range all {
		if !slices.ContainsFunc(s.Workloads, w.again) {
			s.Workloads = append(s.Workloads, w)
		}
	}
}

func trimmed(names []string) []string {
	return gather.Each(names, strings.TrimSpace)
}

// Clone returns a copy that shares no memory with s.
func (s *Study) Clone() *Study {
	c := *s
	c.Networks = slices.Clone(s.Networks)
	c.Changes = slices.Clone(s.Changes)
	c.Placement = slices.Clone(s.Placement)
	c.Claims = slices.Clone(s.Claims)
	c.Goals = slices.Clone(s.Goals)
	c.Factors = s.Factors.Join(nil)
	c.Workloads = nil
	for _, w := range s.Workloads {
		c.Workloads = append(c.Workloads, Workload{Name: w.Name, Levels: w.Levels.Join(nil)})
	}
	return &c
}

// MoveTo has the study run on a kind of testbed. Cards and processors of servers that it names stay behind where that kind joins its nodes
// over none; the card of a cluster's nodes does anyway.
func (s *Study) MoveTo(kind string, cards bool) {
	if kind != s.Testbed.Kind {
		s.Testbed.Via = ""
	}
	s.Testbed.Kind = kind
	if !cards {
		s.Testbed.CPU = nil
		s.Testbed.NIC = ""
	}
}

// LeaveLinks takes out what the study says of the links between nodes (their rate, delay, loss and bonds), so that they are measured as they
// are found. It returns the keys that there were.
func (s *Study) LeaveLinks() (left []string) {
	for _, d := range s.parameters() {
		if (strings.HasPrefix(d.Key, "link.") || strings.HasPrefix(d.Key, "bond.")) && s.varies(d.Key) {
			s.common(d.Key, nil)
			left = append(left, d.Key)
		}
	}
	if s.Testbed.Link.Rate > 0 {
		s.Testbed.Link.Rate = 0
		left = gather.Once(left, "link.rate")
	}
	return left
}
