package study

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// Bounds of what a study may ask for: wide enough for every real experiment, and tight enough to catch slips.
const (
	maxNodesPods  = 64
	maxCPU        = 8191 // the most that Linux is built for
	noCPU         = -1   // of an end for which none was read
	minMTU        = 576  // what every IPv4 host must accept
	maxMTU        = 65535
	minRate       = unit.Kbit
	maxRate       = unit.Tbit
	minBurst      = time.Millisecond
	maxBurst      = 10 * time.Second
	maxBuilds     = 1000
	maxRounds     = 100_000
	maxTimeBudget = 7 * 24 * time.Hour
	maxCells      = 10_000
	maxText       = 2000
)

// checker holds a study against its bounds and against what is known. at finds the place of a value, given says whether
// it was in the input and bad whether it could not be read (what depends on it is then left unchecked).
type checker struct {
	study *Study
	known Known
	kinds map[string]KnownTestbed // all that is known of testbeds, also of others than the study's
	at    func(path string) Position
	given func(path string) bool
	bad   func(path string) bool
	// within finds the place of a part of a text, from its offset; false if the text is not written as it reads.
	within func(path, text string, offset int) (Position, bool)
	errs   Errors
}

func (c *checker) fail(path, problem, fix string) {
	c.errs = append(c.errs, &Error{Position: c.at(path), Problem: problem, Fix: fix})
}

func (c *checker) check() {
	c.known = c.known.of(c.study.Testbed.Kind)
	c.names()
	c.testbed()
	c.networks()
	c.placement()
	c.workloads()
	c.changedLevels()
	c.mtus()
	c.design()
	c.budget()
	c.claims()
	c.goals()
}

// missing reports a required key that is not there.
func (c *checker) missing(path, fix string) bool {
	if c.given(path) {
		return false
	}
	c.fail("", fmt.Sprintf("the key %q is missing", path), fix)
	return true
}

func (c *checker) names() {
	s := c.study
	if !c.missing("study", "name the study: study: my-study") && !c.bad("study") {
		if why := NameProblem(s.Name); why != "" {
			c.fail("study", fmt.Sprintf("study name %s: %s", printed(s.Name), why),
				"the name becomes part of a folder's name: "+NameFix)
		}
	}
	c.text("question", s.Question)
}

// NameFix says what a name may be.
const NameFix = "use up to 64 letters, digits, dots, dashes and underscores, and begin with a letter or digit"

// NameProblem says why a name can't stand for a folder, "" if it can.
func NameProblem(name string) string {
	if what := hostile(name); what != "" {
		return "it has " + what
	}
	switch {
	case name == "":
		return "it is empty"
	case len(name) > 64:
		return fmt.Sprintf("it has %d characters", len(name))
	case strings.ContainsAny(name, "<>&\"'"):
		return "it has characters of HTML"
	case strings.ContainsAny(name, `/\`):
		return "it has a path separator"
	case strings.Contains(name, ".."):
		return "it has two dots in a row"
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._-", r)) {
			return fmt.Sprintf("it has the character %q", r)
		}
	}
	return ""
}

// printed quotes a name so that it can do no harm on a terminal.
func printed(s string) string { return fmt.Sprintf("%+q", clip(s)) }

func (c *checker) text(path, s string) {
	if what := hostile(s); what != "" {
		c.fail(path, fmt.Sprintf("%s has %s", leaf(path), what), "remove it")
	} else if len(s) > maxText {
		c.fail(path, fmt.Sprintf("%s has %d bytes", leaf(path), len(s)), fmt.Sprintf("at most %d", maxText))
	}
}

// leaf is the last key of a path. Keys of levels may have a dot.
func leaf(path string) string {
	if inner, ok := levelKey(path); ok {
		path, _, _ = strings.Cut(inner, "[")
		return path
	}
	path = path[strings.LastIndexByte(path, '.')+1:]
	path, _, _ = strings.Cut(path, "[")
	return path
}

// levelKey is the part of a path below factors or a workload.
func levelKey(path string) (string, bool) {
	if inner, ok := strings.CutPrefix(path, "factors."); ok {
		return inner, true
	}
	if rest, ok := strings.CutPrefix(path, "workloads["); ok {
		_, inner, found := strings.Cut(rest, "].")
		return inner, found
	}
	return "", false
}

func inRange[T int | time.Duration | float64 | unit.Bytes | unit.BitsPerSecond](c *checker, path string, v, low, high T, text func(T) string) bool {
	if v >= low && v <= high {
		return true
	}
	if !c.bad(path) {
		c.fail(path, fmt.Sprintf("%s %s is outside %s to %s", leaf(path), text(v), text(low), text(high)), "")
	}
	return false
}

func decimal(v int) string                { return fmt.Sprint(v) }
func bitRate(v unit.BitsPerSecond) string { return v.String() }

// testbedsThat are the names of the known testbeds with a property.
func (c *checker) testbedsThat(has func(KnownTestbed) bool) []string {
	return gather.Where(slices.Sorted(maps.Keys(c.kinds)), func(name string) bool { return has(c.kinds[name]) })
}

func (c *checker) testbed() {
	t := c.study.Testbed
	if !c.bad("testbed.kind") && !slices.Contains(c.known.Testbeds, t.Kind) {
		c.fail("testbed.kind", fmt.Sprintf("unknown testbed %s", printed(t.Kind)), suggest(t.Kind, c.known.Testbeds))
	}
	if t.NIC != "" && !c.bad("testbed.kind") && !c.kinds[t.Kind].Cards {
		on := c.testbedsThat(func(k KnownTestbed) bool { return k.Cards })
		c.fail("testbed.nic", fmt.Sprintf("testbed %s has no cards to choose from", printed(t.Kind)), "write kind: "+strings.Join(on, " or kind: "))
	}
	if t.Via != "" && !c.bad("testbed.kind") && !c.kinds[t.Kind].Changes {
		on := c.testbedsThat(func(k KnownTestbed) bool { return k.Changes })
		c.fail("testbed.via", fmt.Sprintf("testbed %s has no cards of a cluster's nodes", printed(t.Kind)), "write kind: "+strings.Join(on, " or kind: "))
	}
	c.pins(t)
	inRange(c, "testbed.nodes", t.Nodes, 1, maxNodesPods, decimal)
	inRange(c, "testbed.pods", t.Pods, 1, maxNodesPods, decimal)
	inRange(c, "testbed.link.mtu", t.Link.MTU, minMTU, maxMTU, bytesText)
	if t.Link.Rate != 0 || c.given("testbed.link.rate") {
		inRange(c, "testbed.link.rate", t.Link.Rate, minRate, maxRate, bitRate)
	}
}

// pins checks the processors that a study gives the ends of workloads.
func (c *checker) pins(t Testbed) {
	if t.CPU == nil || c.bad("testbed.cpu") || c.bad("testbed.kind") {
		return
	}
	if !c.kinds[t.Kind].Cards {
		c.fail("testbed.cpu", fmt.Sprintf("testbed %s chooses processors itself", printed(t.Kind)), "leave it out; a workload's cpu parameter says whether both ends have one or two")
		return
	}
	for key, v := range map[string]int{"client": t.CPU.Client, "server": t.CPU.Server} {
		if v == noCPU {
			c.fail("testbed.cpu", "cpu has no "+key, "name the processor of each end: cpu: {client: 2, server: 3}")
		} else {
			inRange(c, "testbed.cpu."+key, v, 0, maxCPU, decimal)
		}
	}
}

func (c *checker) networks() {
	s := c.study
	if !c.missing("networks", "list what to compare: networks: [host, bridge]") && !c.bad("networks") && len(s.Networks) == 0 {
		c.fail("networks", "networks is an empty list", "name at least one")
	}
	for i, n := range s.Networks {
		path := fmt.Sprintf("networks[%d]", i)
		if change, is := s.Change(n); is && !slices.Contains(s.Networks[:i], n) {
			c.changed(path, change)
			continue
		}
		if !c.unknown(path, n) && slices.Contains(s.Networks[:i], n) {
			c.twice(path, "network "+n, fmt.Sprintf("networks[%d]", slices.Index(s.Networks, n)))
		}
	}
	if c.missing("baseline", "name the network that all others are held against: baseline: host") || c.bad("baseline") {
		return
	}
	switch {
	case c.unknown("baseline", s.Baseline):
	case c.given("networks") && !c.bad("networks") && !slices.Contains(s.Networks, s.Baseline):
		c.fail("baseline", fmt.Sprintf("the baseline %s is not one of networks", s.Baseline), fmt.Sprintf("add %s to networks", s.Baseline))
	}
}

// unknown reports a network that there is not, or whose description is wrong.
func (c *checker) unknown(path, name string) bool {
	is, err := c.known.reads(name)
	if _, changes := c.study.Change(name); changes {
		is, err = true, nil
	}
	switch {
	case is && err == nil:
		return false
	case is:
		c.fail(path, fmt.Sprintf("network %s: %v", printed(name), err), "")
	default:
		c.fail(path, "unknown network "+printed(name), suggest(name, append(c.study.changing(), c.known.Networks...)))
	}
	return true
}

// reads tells whether a network is of the catalogue or described in a file, and what is wrong with the description.
func (k Known) reads(name string) (is bool, err error) {
	if slices.Contains(k.Networks, name) {
		return true, nil
	}
	if k.ReadNetwork == nil {
		return false, nil
	}
	return k.ReadNetwork(name)
}

// twice reports a level that is in its list already.
func (c *checker) twice(path, what, first string) {
	fix := "leave one out"
	if at := c.at(first); at.Line > 0 {
		fix = fmt.Sprintf("it is already on line %d", at.Line)
	}
	c.fail(path, what+" is there twice", fix)
}

func (c *checker) placement() {
	s := c.study
	known := []string{string(result.SameNode), string(result.CrossNode)}
	for i, p := range s.Placement {
		path := fmt.Sprintf("placement[%d]", i)
		switch {
		case !slices.Contains(known, string(p)):
			c.fail(path, "unknown placement "+printed(string(p)), suggest(string(p), known))
		case slices.Contains(s.Placement[:i], p):
			c.twice(path, "placement "+string(p), fmt.Sprintf("placement[%d]", slices.Index(s.Placement, p)))
		case p == result.SameNode && s.Testbed.Pods == 1:
			c.fail(path, "same-node needs two pods on a node, and testbed.pods is 1", "set testbed.pods to 2")
		case p == result.CrossNode && s.Testbed.Nodes == 1:
			c.fail(path, "cross-node needs two nodes, and testbed.nodes is 1", "set testbed.nodes to 2")
		}
	}
	if len(s.Placement) == 0 && !c.bad("placement") && !c.bad("testbed") {
		c.fail("placement", "no placement is possible: there is only one pod", "give the testbed two nodes, or two pods on a node")
	}
}

func (c *checker) design() {
	d := c.study.Design
	inRange(c, "design.burst", d.Burst, minBurst, maxBurst, unit.FormatDuration)
	inRange(c, "design.builds", d.Builds, 1, maxBuilds, decimal)
	if c.given("design.rounds") {
		inRange(c, "design.rounds", d.Rounds, 1, maxRounds, decimal)
	}
	if c.given("design.blocks") {
		inRange(c, "design.blocks", d.Blocks, 1, maxBuilds, decimal)
	}
	inRange(c, "design.confidence", d.Confidence, 0.5, 0.9999, floatText)
	if d.Margin >= 1 && d.Margin <= 50 {
		c.fail("design.margin", fmt.Sprintf("margin %g is more than all there is", d.Margin), fmt.Sprintf("did you mean %g%%?", d.Margin))
	} else {
		inRange(c, "design.margin", d.Margin, 0, 0.5, floatText)
	}
}

// budget refuses a time in which not even the smallest subset, one workload setting on all networks, can be visited once.
func (c *checker) budget() {
	s, path := c.study, "design.time_budget"
	if c.bad(path) || c.bad("design.burst") || c.bad("networks") || c.bad("placement") {
		return
	}
	cells := (len(s.Networks) + 1) * max(1, len(s.Placement))
	least := time.Duration(cells) * max(s.Design.Burst, 0)
	switch {
	case s.Design.TimeBudget <= 0:
		c.fail(path, fmt.Sprintf("time budget %s is no time", unit.FormatDuration(s.Design.TimeBudget)), "write for example 60s or 15m")
	case s.Design.TimeBudget > maxTimeBudget:
		c.fail(path, fmt.Sprintf("time budget %s is longer than a week", unit.FormatDuration(s.Design.TimeBudget)), "")
	case s.Design.TimeBudget < least:
		c.fail(path, fmt.Sprintf("time budget %s is less than one round of the smallest subset: %d cells of %s are %s",
			unit.FormatDuration(s.Design.TimeBudget), cells, unit.FormatDuration(s.Design.Burst), unit.FormatDuration(least)),
			"give it more time or fewer networks")
	}
}

func claimID(s string) bool { return begun(s, "-", 64) }

func (c *checker) claims() {
	seen := map[string]int{}
	for i, claim := range c.study.Claims {
		path := fmt.Sprintf("claims[%d]", i)
		if c.bad(path) {
			continue
		}
		for _, part := range []struct {
			key, value string
			needed     bool
		}{
			{"says", claim.Says, true}, {"source", claim.Source, false}, {"published", claim.Published, false}, {"differs", claim.Differs, false},
			{"expect", claim.Expect, true},
		} {
			c.text(path+"."+part.key, part.value)
			if part.needed && strings.TrimSpace(part.value) == "" {
				c.fail(path+"."+part.key, fmt.Sprintf("a claim needs %q", part.key), "")
			}
		}
		first, again := seen[claim.ID]
		switch {
		case !claimID(claim.ID):
			c.fail(path+".id", "claim id "+printed(claim.ID)+" is not a name", "use lower-case letters, digits and dashes")
		case again:
			c.twice(path+".id", "claim "+claim.ID, fmt.Sprintf("claims[%d].id", first))
		default:
			seen[claim.ID] = i
		}
		if strings.TrimSpace(claim.Expect) == "" {
			continue
		}
		c.expectation(path+".expect", claim.Expect)
	}
}

// expectation reports what is wrong with a claim's statement, at the very word if its place is known.
func (c *checker) expectation(path, text string) {
	clauses, err := parseExpectation(text, c.vocabulary())
	var wrong *ExpectationError
	if !errors.As(err, &wrong) {
		c.levelsMeasured(path, clauses)
		return
	}
	if at, ok := c.within(path, text, wrong.Offset); ok {
		c.errs = append(c.errs, &Error{Position: at, Problem: "expect: " + wrong.Problem})
		return
	}
	c.fail(path, "expect, "+wrong.Error(), "")
}
