package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"netdelta/result"
)

// Goal is what has to hold of a network's change against the baseline, in every setting: "vxlan.p99 < +20%".
type Goal struct {
	// Network is "*" for all.
	Network, Metric string
	// Below says that the change has to be below the limit, else it has to be above; OrEqual allows the limit itself.
	Below, OrEqual bool
	// Limit is a share of the baseline (0.2 is 20%), or a time in nanoseconds where InTime.
	Limit  float64
	InTime bool
}

// ParseGoal reads a goal. The error is an *ExpectationError.
func ParseGoal(s string) (Goal, error) {
	fail := func(at int, format string, a ...any) (Goal, error) {
		return Goal{}, &ExpectationError{Offset: at, Column: utf8.RuneCountInString(s[:at]) + 1, Problem: fmt.Sprintf(format, a...)}
	}
	sign := strings.IndexAny(s, "<>")
	if sign < 0 {
		return fail(len(s), "a goal needs < or >: write NETWORK.METRIC < +20%%, or +50us")
	}
	g := Goal{Below: s[sign] == '<'}
	rest := sign + 1
	if strings.HasPrefix(s[rest:], "=") {
		g.OrEqual, rest = true, rest+1
	}
	start := len(s[:sign]) - len(strings.TrimLeft(s[:sign], " \t"))
	subject := strings.TrimSpace(s[:sign])
	metric := ""
	for _, m := range claimMetrics() {
		if strings.HasSuffix(subject, "."+m) && len(m) > len(metric) {
			metric = m
		}
	}
	if metric == "" {
		dot := strings.LastIndexByte(subject, '.')
		if dot < 0 {
			return fail(start, "%q names no metric: write NETWORK.METRIC, such as vxlan.p99", subject)
		}
		return fail(start+dot+1, "unknown metric %q; %s", subject[dot+1:], suggest(subject[dot+1:], claimMetrics()))
	}
	g.Network, g.Metric = strings.TrimSuffix(subject, "."+metric), metric
	if g.Network == "" {
		return fail(start, "a goal is about a network: write NETWORK.%s, or *.%[1]s for all", metric)
	}
	amount := strings.TrimSpace(s[rest:])
	at := rest + len(s[rest:]) - len(strings.TrimLeft(s[rest:], " \t"))
	if problem := g.limit(amount); problem != "" {
		return fail(at, "%s", problem)
	}
	return g, nil
}

// limit reads the amount of a goal, and says what is wrong with it.
func (g *Goal) limit(amount string) (problem string) {
	switch {
	case amount == "":
		return "a goal needs a limit, such as +20% or +50us"
	case amount[0] != '+' && amount[0] != '-':
		return fmt.Sprintf("%q has no sign: a limit is a change against the baseline: write +%[1]s", amount)
	}
	if number, percent := strings.CutSuffix(amount, "%"); percent {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x <= -100 && g.Metric != "loss" {
			return fmt.Sprintf("%q is no change in percent", amount)
		}
		g.Limit = x / 100
		return ""
	}
	d, err := time.ParseDuration(amount)
	switch {
	case err != nil && strings.Contains(err.Error(), "missing unit"):
		return fmt.Sprintf("%q has no unit: write %[1]s%% or %[1]sus", amount)
	case err != nil:
		return fmt.Sprintf("%q is neither a change in percent (+20%%) nor a time (+50us)", amount)
	case timeless(g.Metric):
		return fmt.Sprintf("%s is no time: write the limit in percent", g.Metric)
	}
	g.Limit, g.InTime = float64(d), true
	return ""
}

// Opposite is the goal that holds where this one does not: what --fail-if names must not be.
func (g Goal) Opposite() Goal {
	g.Below, g.OrEqual = !g.Below, !g.OrEqual
	return g
}

// String is the goal as ParseGoal reads it.
func (g Goal) String() string {
	sign := map[bool]string{true: "<", false: ">"}[g.Below]
	if g.OrEqual {
		sign += "="
	}
	limit := strconv.FormatFloat(100*g.Limit, 'g', 12, 64) + "%"
	if g.InTime {
		limit = time.Duration(g.Limit).String()
	}
	if !strings.HasPrefix(limit, "-") {
		limit = "+" + limit
	}
	return g.Network + "." + g.Metric + " " + sign + " " + limit
}

// FailIf are the goals of --fail-if: what each names must not be.
func FailIf(conditions []string) ([]string, error) {
	var goals []string
	for _, c := range conditions {
		g, err := ParseGoal(c)
		if err != nil {
			return nil, fmt.Errorf("--fail-if %q: %w", c, err)
		}
		goals = append(goals, g.Opposite().String())
	}
	return goals, nil
}

// Unjudged are goals as a run has them before it is judged.
func Unjudged(goals []string) []result.Goal {
	var all []result.Goal
	for _, g := range goals {
		all = append(all, result.Goal{Goal: g, Verdict: result.GoalUnknown, Measured: "nothing was measured"})
	}
	return all
}

// goals checks the goals, and that their networks are in the study.
func (c *checker) goals() {
	for i, text := range c.study.Goals {
		path := fmt.Sprintf("goals[%d]", i)
		if c.bad(path) {
			continue
		}
		g, err := ParseGoal(text)
		if err != nil {
			c.fail(path, fmt.Sprintf("goal %s: %v", printed(text), err), "")
			continue
		}
		name, _, _ := strings.Cut(g.Network, " (")
		if name != "*" && !slices.Contains(c.study.Networks, name) {
			c.fail(path, fmt.Sprintf("goal %s: network %s is not in the study", printed(text), printed(name)), suggest(name, c.study.Networks))
		}
	}
}
