package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/unit"
)

func (c *checker) workloads() {
	s := c.study
	if !c.missing("workloads", "list what runs across the networks: workloads: [tcp-rr]") && !c.bad("workloads") && len(s.Workloads) == 0 {
		c.fail("workloads", "workloads is an empty list", "name at least one")
	}
	sound := c.levels("factors", s.Factors)
	cells := 0
	for i, w := range s.Workloads {
		path := fmt.Sprintf("workloads[%d]", i)
		if first := slices.IndexFunc(s.Workloads[:i], w.again); first >= 0 {
			c.twice(path, "workload "+printed(w.Name), fmt.Sprintf("workloads[%d]", first))
			continue
		}
		sound := c.levels(path, w.Levels) && sound && !c.bad(path) && !c.bad("factors")
		c.givenTwice(path, w.Levels)
		known, ok := c.workload(path, w.Name)
		all := w.Levels.Join(s.Factors)
		cells += all.Count() * (len(s.Networks) + 1) * max(1, len(s.Placement))
		if cells > maxCells {
			c.fail(path, fmt.Sprintf("the study has more than %d cells", maxCells), "leave levels out")
			return
		}
		if !sound {
			continue
		}
		where := func(key string) string { return c.levelsAt(path, key) }
		c.regimes(w.Name, all, where)
		if c.idle(all, where); ok && known.Check != nil {
			c.usable(path, w, known)
		}
	}
}

// again says whether a workload's entry adds nothing to an earlier one. With other levels a workload may be there several times:
// what is asked of it under one condition need not be asked under all.
func (w Workload) again(earlier Workload) bool {
	return w.Name == earlier.Name && (len(w.Levels) == 0 || w.Levels.equal(earlier.Levels))
}

// levelsAt is the path of the levels that a workload has of a parameter: its own, or the study's factors.
func (c *checker) levelsAt(workload, key string) string {
	if own := workload + "." + key; c.given(own) {
		return own
	}
	return "factors." + key
}

func (c *checker) workload(path, name string) (KnownWorkload, bool) {
	var names []string
	for _, k := range c.known.Workloads {
		if k.Name == name {
			return k, true
		}
		names = append(names, k.Name)
	}
	c.fail(path, "unknown workload "+printed(name), suggest(name, names))
	return KnownWorkload{}, false
}

// givenTwice refuses a parameter that has levels of a workload's own and as a factor of all.
func (c *checker) givenTwice(path string, l Levels) {
	for key := range l {
		if len(c.study.Factors[key]) > 0 {
			c.fail(path+"."+key, key+" is in factors as well", "leave one of them out")
		}
	}
}

// usable asks the workload about its parameters: level by level, so that the one that is wrong is named at its place,
// and then, when each is right by itself, about their combinations.
func (c *checker) usable(path string, w Workload, known KnownWorkload) {
	before := len(c.errs)
	alone := func(prefix string, l Levels) {
		for _, f := range l.factors(c.study.parameters()) {
			for _, lv := range f {
				others := c.others(w, known, lv.of)
				err := known.Check(set(others, lv.of, lv.value))
				if err != nil && lv.of.Key != "engine" && known.Check(set(c.byEngine(w, others), lv.of, lv.value)) == nil {
					err = nil // it means something to the engine that the study names; whether they go together is asked below
				}
				if err != nil {
					c.fail(prefix+"."+lv.path, fmt.Sprintf("workload %s: %v", w.Name, err), "")
				}
			}
		}
	}
	alone(path, w.Levels)
	alone("factors", c.study.Factors)
	if len(c.errs) > before {
		return
	}
	for _, p := range c.study.Combinations(w) {
		if err := known.Check(WithDefaults(p, known.Defaults)); err != nil {
			c.fail(path, fmt.Sprintf("workload %s, levels together: %v", w.Name, err), "")
			return
		}
	}
}

// levels checks each level by itself and refuses one that is there twice. It reports whether all are sound.
func (c *checker) levels(path string, l Levels) bool {
	before := len(c.errs)
	for _, d := range c.study.parameters() {
		each(c, path+"."+d.Key, l[d.Key], func(path string, v any) { c.bound(path, d, v) })
	}
	return len(c.errs) == before
}

// regimes refuses a regime of what has none, and one that is paced without a rate.
func (c *checker) regimes(workload string, all Levels, where func(key string) string) {
	const key = "regime"
	switch paced := slices.Index(all[key], any(result.RegimePaced)); {
	case len(all[key]) == 0:
	case !result.HasRegimes(workload):
		c.fail(where(key), "workload "+workload+" has no regime: it is not of requests and responses", "use cpu: same or two")
	case paced >= 0 && len(all["request_rate"]) == 0:
		c.fail(fmt.Sprintf("%s[%d]", where(key), paced), "regime paced has no rate", "say how many requests a second: request_rate: 1000")
	}
}

// others are the parameters that a level of a workload is asked about together with: how large a volume's file is means something
// only where there is a volume, and the share of reads only of a mixed operation.
func (c *checker) others(w Workload, known KnownWorkload, of result.Parameter) result.Params {
	p := known.Defaults
	if needed, is := parameterOf(c.study.parameters(), of.Needs.Key); is && of.Needs.Levels != "" {
		first, _, _ := strings.Cut(of.Needs.Levels, "|")
		p = p.With(needed, first)
	}
	if classes := w.Levels.Join(c.study.Factors)["storage_class"]; len(classes) > 0 {
		p.StorageClass = classes[0].(string)
		if known.Check(p) != nil {
			p.StorageClass = known.Defaults.StorageClass // the class is the one that is wrong
		}
	}
	return p
}

// byEngine has the study's last engine, with as many connections as the study has at last: threads are wrk's, which shares connections
// among them.
func (c *checker) byEngine(w Workload, p result.Params) result.Params {
	levels := w.Levels.Join(c.study.Factors)
	for _, key := range []string{"engine", "connections"} {
		if d, is := parameterOf(c.study.parameters(), key); is && len(levels[key]) > 0 {
			p = p.With(d, levels[key][len(levels[key])-1])
		}
	}
	return p
}

// mtu checks a level of the underlay's MTU.
func (c *checker) mtu(path string, v unit.Bytes) {
	most := c.study.Testbed.Link.MTU
	if slices.Contains(c.study.changedKeys(), "mtu") {
		most = maxMTU // the cluster's own links carry it
	}
	if inRange(c, path, v, minMTU, maxMTU, bytesText) && v > most && c.given("testbed.link.mtu") && !c.bad("testbed.link.mtu") {
		c.fail(path, fmt.Sprintf("mtu %d is more than the testbed's links carry (%d)", v, most), "raise testbed.link.mtu")
	}
}

func (c *checker) rate(path string, d result.Parameter, v unit.BitsPerSecond) {
	burst := c.study.Design.Burst
	switch {
	case v != SearchRate:
		c.ranged(path, d, v)
	case burst < engine.SearchLeast && !c.bad("design.burst"):
		c.fail(path, fmt.Sprintf("a burst of %s is too short to search for a rate in: it takes %s at least", unit.FormatDuration(burst), unit.FormatDuration(engine.SearchLeast)),
			"set design: {burst: 500ms}")
	}
}

// tripsInBurst is how many round trips of a delayed link a burst must have room for, or it would measure its own end.
const tripsInBurst = 4

func (c *checker) linkDelay(path string, d result.Parameter, v time.Duration) {
	if c.ranged(path, d, v) {
		c.longEnough(path, v)
	}
}

// longEnough refuses bursts that have no room for the round trips of a delayed link.
func (c *checker) longEnough(path string, v time.Duration) {
	if burst, least := c.study.Design.Burst, 2*tripsInBurst*v; burst < least && !c.bad("design.burst") {
		c.fail(path, fmt.Sprintf("a burst of %s is too short for a round trip that takes %s longer", unit.FormatDuration(burst), unit.FormatDuration(2*v)),
			"set design: {burst: "+unit.FormatDuration(least)+"}")
	}
}

// nodeLinks checks a level of the links of single nodes.
func (c *checker) nodeLinks(path, text string) {
	links, err := result.ParseNodeLinks(text)
	if err != nil {
		c.fail(path, "link.nodes "+err.Error(), "")
		return
	}
	for _, l := range links {
		if l.Node >= c.study.Testbed.Nodes && !c.bad("testbed.nodes") {
			c.fail(path, fmt.Sprintf("link.nodes %s: the testbed has %s, from node0 on", l, unit.Counted(c.study.Testbed.Nodes, "node")), "raise testbed.nodes")
		}
		if l.Delay > 0 {
			c.longEnough(path, l.Delay)
		}
	}
}

// idle reports levels that change nothing, as the number of rules where there is no policy. all are the levels of a workload
// together with the factors; where finds the path of a key's levels.
func (c *checker) idle(all Levels, where func(key string) string) {
	var combined []result.Params
	for _, d := range c.study.parameters() {
		if len(all[d.Key]) == 0 {
			continue
		}
		if d.Excludes.Key != "" && len(all[d.Excludes.Key]) > 0 {
			// The workload can't tell: what it is asked about has its default where none was given.
			c.fail(where(d.Key), fmt.Sprintf("%s changes nothing: with a %s, %s", d.Key, d.Excludes.Key, d.Excludes.Why), d.Excludes.Fix)
		}
		if d.Needs.Key == "" {
			continue
		}
		if combined == nil {
			combined = all.combinations(c.study.parameters())
		}
		if !slices.ContainsFunc(combined, func(p result.Params) bool { return p.Given(d) }) {
			c.fail(where(d.Key), fmt.Sprintf("%s changes nothing: there is no %s that it could be of", d.Key, d.Needs.Key), d.Needs.Fix)
		}
	}
}

func each[T comparable](c *checker, path string, values []T, check func(path string, v T)) {
	for i, v := range values {
		p := fmt.Sprintf("%s[%d]", path, i)
		if first := slices.Index(values[:i], v); first >= 0 {
			c.twice(p, fmt.Sprintf("%s %v", leaf(p), printable(v)), fmt.Sprintf("%s[%d]", path, first))
			continue
		}
		check(p, v)
	}
}

// printable quotes text, and leaves other values as they print themselves.
func printable(v any) any {
	switch s := v.(type) {
	case string:
		return printed(s)
	case unit.BitsPerSecond:
		if s == SearchRate {
			return search
		}
	}
	return v
}

func (c *checker) oneOf(path, v string, known ...string) {
	if !slices.Contains(known, v) {
		c.fail(path, fmt.Sprintf("unknown %s %s", leaf(path), printed(v)), suggest(v, known))
	}
}

// spelled says whether s has 1 to most characters: lower-case letters, digits, and others. A regular expression would be compiled whenever
// this program starts, and each agent is this program.
func spelled(s, others string, most int) bool {
	return s != "" && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) && !strings.ContainsRune(others, r) })
}

// begun is spelled, of a name that begins with a letter or a digit.
func begun(s, others string, most int) bool { return spelled(s, others, most) && plain(rune(s[0])) }

// plain says whether a character is a lower-case letter or a digit.
func plain(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

// algorithmName is what the kernel takes as the name of a congestion control: TCP_CA_NAME_MAX is 16 with its end.
func algorithmName(s string) bool { return spelled(s, "_-", 15) }

// className is what Kubernetes takes as the name of a StorageClass.
func className(s string) bool { return begun(s, "-.", 253) && plain(rune(s[len(s)-1])) }

// named checks a level that is the name of something that the study can't know.
func (c *checker) named(path string, d result.Parameter, v string, is func(string) bool, what, fix string) {
	if !is(v) {
		c.fail(path, fmt.Sprintf("%s %s is not the name of %s", d.Key, printed(v), what), fix)
	}
}

// mtus asks, for each network and each MTU and version of IP that it would carry, whether its encapsulation leaves room.
func (c *checker) mtus() {
	if c.known.CheckMTU == nil || c.bad("testbed.link.mtu") {
		return
	}
	loads := c.study.Workloads
	if len(loads) == 0 {
		loads = []Workload{{}} // what is asked of the links is checked in any case
	}
	asked := map[underlay]bool{}
	for i, w := range loads {
		for _, u := range c.underlays(i, w) {
			if !asked[u] && u.mtu >= minMTU && u.mtu <= maxMTU { // others are reported already
				asked[u] = true
				c.room(u)
			}
		}
	}
}

// underlay is what a workload asks of the links between nodes, with the place of the MTU.
type underlay struct {
	path   string
	mtu    unit.Bytes
	family result.Family
}

// underlays are those that a workload of the study runs over.
func (c *checker) underlays(index int, w Workload) []underlay {
	path, mtus := "testbed.link.mtu", []any{c.study.Testbed.Link.MTU}
	switch {
	case len(w.Levels["mtu"]) > 0:
		path, mtus = fmt.Sprintf("workloads[%d].mtu", index), w.Levels["mtu"]
	case len(c.study.Factors["mtu"]) > 0:
		path, mtus = "factors.mtu", c.study.Factors["mtu"]
	}
	asked := w.Levels.Join(c.study.Factors)["family"]
	if len(asked) == 0 {
		asked = []any{string(result.IPv4)}
	}
	var all []underlay
	for i, mtu := range mtus {
		at := path
		if path != "testbed.link.mtu" {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		for _, family := range asked {
			if family := result.Family(family.(string)); family == result.IPv4 || family == result.IPv6 {
				all = append(all, underlay{at, mtu.(unit.Bytes), family})
			}
		}
	}
	return all
}

// room asks each network whether it has room in an underlay.
func (c *checker) room(u underlay) {
	for _, n := range c.study.Networks {
		if is, err := c.known.reads(n); !is || err != nil {
			continue // it has been said
		}
		if err := c.known.CheckMTU(n, u.family, u.mtu); err != nil {
			c.fail(u.path, err.Error(), "raise it, or leave the network out")
		}
	}
}
