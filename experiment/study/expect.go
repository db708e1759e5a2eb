package study

import (
	"strconv"
	"strings"
	"time"
)

// Expectation is what a claim says of deltas: every clause must hold. A clause is written in words, or as a comparison of
// deltas under a heading; both mean the same Clause.
//
//	CLAUSE { ; CLAUSE }
//	CLAUSE      METRIC of NETWORKS RELATION [where CONDITION, CONDITION ...]
//	            METRIC rises with METRIC of WORKLOAD [where ...] | METRIC falls with METRIC of WORKLOAD [where ...]
//	            [WORKLOAD] METRIC [, PLACEMENT] [, CONDITION ...]: COMPARISON
//	RELATION    below NETWORKS [by RANGE] | above NETWORKS [by RANGE]
//	            at most AMOUNT above NETWORKS | at most AMOUNT below NETWORKS
//	            within AMOUNT of NETWORKS | within AMOUNT of each other
//	            changes between CONDITION and CONDITION
//	            rises [by RANGE] between CONDITION and CONDITION
//	            falls [by RANGE] between CONDITION and CONDITION
//	            stays within AMOUNT between CONDITION and CONDITION
//	COMPARISON  A/BASE < B/BASE | A < B            and each of them with > in place of <
//	            A/BASE < 1.2 | A/BASE - 1 < 20%
//	            A - BASE < 10us
//	NETWORKS    NAME, NAME ... | others
//	RANGE       AMOUNT (that much or more; also "at least AMOUNT") | AMOUNT..AMOUNT
//	AMOUNT      a percentage (5%) or a time (10us)
//	CONDITION   KEY=VALUE | KEY=VALUE|VALUE ...
type Expectation []Clause

// Clause is one statement of an Expectation.
type Clause struct {
	Metric   string
	Networks []string
	Relation Relation
	// Against are the networks that Networks are held against; Others stands for all networks of the run that the clause
	// does not name, without the baseline. It is empty for EachOther and for what is between two levels.
	Against []string
	// Low and High bound the difference. Below and Above: both are zero for a direction without a figure; High alone is
	// zero where Low is the least and there is no most. AtMostAbove, AtMostBelow, Within, EachOther, Stays: both are the most.
	// Rises and Falls are as Above and Below.
	Low, High Amount
	// From and To are the two levels between which the delta changes (Changes), or the network itself rises, falls or stays.
	From, To Condition
	// With is what a metric goes with over all networks of a setting (RisesWith, FallsWith).
	With  Raw
	Where []Condition
}

// Raw is a figure that networks have raw: the metric of a workload.
type Raw struct{ Metric, Workload string }

// Raws are those that a run holds rates of applications against.
func Raws() []Raw { return []Raw{{"p50", "tcp-rr"}, {"throughput", "tcp-stream"}} }

// Relation is how the networks of a clause stand to what they are held against.
type Relation string

// The relations: every network is below (or above) every one it is held against; is not further above (or below) it than an
// amount; lies within an amount of it; lies within an amount of every other one named; differs in its delta between two
// levels; is itself higher, lower or within an amount at the second of two levels, whatever the baseline does. Of a metric over all
// networks: is higher, or lower, where networks have more of a raw figure.
const (
	Below       Relation = "below"
	Above       Relation = "above"
	AtMostAbove Relation = "at-most-above"
	AtMostBelow Relation = "at-most-below"
	Within      Relation = "within"
	EachOther   Relation = "each-other"
	Changes     Relation = "changes"
	Rises       Relation = "rises"
	Falls       Relation = "falls"
	Stays       Relation = "stays"
	RisesWith   Relation = "rises-with"
	FallsWith   Relation = "falls-with"
)

// Others stands for all networks of the run that a clause does not name.
const Others = "others"

// BetweenLevels says whether the clause is about two levels of a factor.
func (c Clause) BetweenLevels() bool {
	return c.Relation == Changes || c.OfEffect()
}

// OfEffect says whether the clause is about what a factor does to the networks themselves, not to what they cost.
func (c Clause) OfEffect() bool {
	return c.Relation == Rises || c.Relation == Falls || c.Relation == Stays
}

// OfCorrelation says whether the clause is about what goes with what over all networks.
func (c Clause) OfCorrelation() bool { return c.Relation == RisesWith || c.Relation == FallsWith }

// InTime says whether the clause speaks of times, so that differences are taken in them and not as ratios.
func (c Clause) InTime() bool { return c.Low.Absolute != 0 || c.High.Absolute != 0 }

// Amount is a relative or an absolute difference; the other is zero.
type Amount struct {
	Relative float64 // a fraction: 0.05 is 5%
	Absolute time.Duration
}

// Condition restricts a clause to cells in which the factor has one of the values.
type Condition struct {
	Key    string // placement, workload, path or a parameter
	Values []string
}

// String is the condition as it is written: "message=300|500".
func (c Condition) String() string { return c.Key + "=" + strings.Join(c.Values, "|") }

// String is the amount as it is written: "5%", "10us".
func (a Amount) String() string {
	if a.Absolute != 0 {
		return strings.Replace(FormatDuration(a.Absolute), "µ", "u", 1)
	}
	return strconv.FormatFloat(rounded(100*a.Relative, 1e10), 'f', -1, 64) + "%"
}
