// Package junit writes what was found as JUnit XML, which the servers of continuous integration read: a test case for each thing that
// could have gone wrong. The form is the one that they have in common
// (https://github.com/jenkinsci/xunit-plugin, junit-10.xsd): suites, cases, failures and skips.
package junit

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// The names of the suites.
const (
	suiteChecks  = "checks"
	suiteClaims  = "claims"
	suiteGoals   = "goals"
	suiteChanges = "changes"
)

// Write writes a run: a case for each trial's check, which fails where the check found something, and one for each claim of the study,
// which fails where the run contradicts it and is skipped where the run can't tell. Goals are cases in the same way. What the machine did to
// a trial is no fault of what is tested, nor is a contradiction of what others have published: these cases are skipped, too.
func Write(w io.Writer, run result.Run, trials result.Trials) error {
	took := run.Took()
	all := []suite{
		newSuite(suiteChecks, run.Study, run.Started, checks(run, trials)), newSuite(suiteClaims, run.Study, run.Started, claims(run)),
	}
	if len(run.Goals) > 0 {
		all = append(all, newSuite(suiteGoals, run.Study, run.Started, goals(run)))
	}
	return write(w, "netdelta "+run.Run, took, all)
}

// WriteComparison writes a comparison: a case for each change that is judged, which fails where it is a regression and is skipped where the
// runs can't tell. Deltas that only one run has are skipped too. Where nothing could be compared, a case of its own fails, so that a
// run that was cut short does not pass for a good one.
func WriteComparison(w io.Writer, c result.Comparison) error {
	return write(w, "netdelta "+c.Old.Run+" to "+c.New.Run, 0, []suite{newSuite(suiteChanges, c.New.Study, c.New.Started, changes(c))})
}

// document is the root of the format.
type document struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Time     string   `xml:"time,attr,omitempty"`
	Suites   []suite  `xml:"testsuite"`
}

type suite struct {
	Name      string     `xml:"name,attr"`
	Tests     int        `xml:"tests,attr"`
	Failures  int        `xml:"failures,attr"`
	Errors    int        `xml:"errors,attr"`
	Skipped   int        `xml:"skipped,attr"`
	Timestamp string     `xml:"timestamp,attr,omitempty"`
	Cases     []testCase `xml:"testcase"`
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *failure `xml:"failure"`
	Skipped *skipped `xml:"skipped"`
	Output  string   `xml:"system-out,omitempty"`
}

type failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

// newSuite counts the cases of a suite, and puts them into a class that names suite and study.
func newSuite(name, study string, at time.Time, cases []testCase) suite {
	s := suite{Name: name, Tests: len(cases), Cases: cases}
	if !at.IsZero() {
		s.Timestamp = at.UTC().Format("2006-01-02T15:04:05")
	}
	for i := range cases {
		cases[i].Class = "netdelta." + clean(study) + "." + name
		switch {
		case cases[i].Failure != nil:
			s.Failures++
		case cases[i].Skipped != nil:
			s.Skipped++
		}
	}
	return s
}

// write prints the document.
func write(w io.Writer, name string, took time.Duration, suites []suite) error {
	d := document{Name: clean(name), Suites: suites}
	if took > 0 {
		d.Time = strconv.FormatFloat(took.Seconds(), 'f', 3, 64)
	}
	for _, s := range suites {
		d.Tests += s.Tests
		d.Failures += s.Failures
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(d); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// clean is text as every reader takes it: XML has no way to write control characters, and a server prints the rest to a page or a
// terminal. Marks that Unicode keeps for no use are no characters of XML either.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, ui.Clean(text))
}

// checks are the cases of a run's trials: each by itself, and what was found in it.
func checks(run result.Run, trials result.Trials) []testCase {
	var cases []testCase
	found := map[string]bool{}
	for _, c := range run.Checks {
		found[c.Trial] = found[c.Trial] || !c.OK
		t := testCase{Name: clean(c.Trial + ": " + c.Check)}
		why := "expected " + c.Expected + ", observed " + c.Observed
		switch {
		case c.OK:
		case slices.Contains(ofMachine(), c.Check):
			t.Skipped = &skipped{clean(why)}
		default:
			t.Failure = newFailure(c.Check, why)
		}
		cases = append(cases, t)
	}
	for t := range result.Each(trials) {
		if !found[t.ID()] {
			cases = append(cases, testCase{Name: clean(t.ID() + ": every check")})
		}
	}
	return cases
}

// ofMachine are the checks that say what a machine did to a trial meanwhile.
func ofMachine() []string {
	return []string{insight.CheckDisturbed, insight.CheckLeftOut, insight.CheckScatter, insight.CheckState, insight.CheckStep, insight.CheckCarry, insight.CheckBusy}
}

// newFailure is a failure of a kind, with its reason in a line.
func newFailure(kind, why string) *failure {
	why = clean(why)
	return &failure{Message: why, Type: clean(kind), Text: why}
}

// claims are the cases of a study's claims.
func claims(run result.Run) []testCase {
	var cases []testCase
	for _, c := range run.Claims {
		t := testCase{Name: clean(c.ID + ": " + c.Says)}
		measured := cmp.Or(c.Measured, "nothing of it was measured")
		switch c.Verdict {
		case insight.Confirmed, insight.ConfirmedInPart:
			t.Output = clean(c.Verdict + ": " + measured)
		case insight.Contradicted:
			if c.Source+c.Published != "" {
				t.Skipped = &skipped{clean("contradicted: published " + c.Published + ", measured " + measured)}
			} else {
				t.Failure = newFailure(insight.Contradicted, "measured "+measured)
			}
		default:
			t.Skipped = &skipped{clean(c.Verdict + ": " + measured)}
		}
		cases = append(cases, t)
	}
	return cases
}

// goals are the cases of a run's goals: one that the run can't tell is skipped.
func goals(run result.Run) []testCase {
	var cases []testCase
	for _, g := range run.Goals {
		t := testCase{Name: clean(g.Goal)}
		switch g.Verdict {
		case result.GoalPass:
			t.Output = clean(g.Measured)
		case result.GoalFail:
			t.Failure = newFailure(g.Verdict, "measured "+g.Measured)
		default:
			t.Skipped = &skipped{clean(g.Verdict + ": " + g.Measured)}
		}
		cases = append(cases, t)
	}
	return cases
}

// changes are the cases of a comparison.
func changes(c result.Comparison) []testCase {
	var cases []testCase
	for _, change := range insight.Judged(c) {
		t := testCase{Name: clean(title(change.Network, change.Path, change.Setting, change.Metric))}
		says := fmt.Sprintf("%s: %s since %s; against %s it cost %s, and now %s", change.Verdict, words.Amount(change), c.Old.Run,
			change.Baseline, words.Against(change.Old, change.Unit), words.Against(change.New, change.Unit))
		switch stats.Verdict(change.Verdict) {
		case stats.Regressed:
			t.Failure = newFailure(change.Verdict, says)
		case stats.Unresolved:
			t.Skipped = &skipped{clean(says)}
		default:
			t.Output = clean(says)
		}
		cases = append(cases, t)
	}
	for _, u := range c.Unpaired {
		cases = append(cases, testCase{
			Name: clean(title(u.Network, u.Path, u.Setting, u.Metric)), Skipped: &skipped{clean("only in the " + u.In + " run: " + u.Why)},
		})
	}
	if c.Verdict == insight.NothingCompared {
		cases = append(cases, testCase{Name: "something can be compared", Failure: newFailure(insight.NothingCompared, c.Says)})
	}
	return cases
}

// title names a delta.
func title(network, path string, s result.Setting, metric string) string {
	return insight.Name(network, path) + ", " + words.Load(s) + ", " + words.At(s.Placement) + ": " + metric
}
