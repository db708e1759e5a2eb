package study

import (
	"strings"
)

// expectationWords writes an expectation in words; ParseExpectation reads it back as the same.
func expectationWords(e Expectation) string {
	clauses := make([]string, len(e))
	for i, c := range e {
		clauses[i] = clauseWords(c)
	}
	return strings.Join(clauses, "; ")
}

// clauseWords writes a clause in words.
func clauseWords(c Clause) string {
	words := []string{c.Metric, "of", strings.Join(c.Networks, ", ")}
	if c.OfCorrelation() {
		words = []string{c.Metric, strings.TrimSuffix(string(c.Relation), "-with"), "with", c.With.Metric, "of", c.With.Workload}
	}
	against := strings.Join(c.Against, ", ")
	switch c.Relation {
	case Below, Above:
		words = append(append(words, string(c.Relation), against), far(c)...)
	case AtMostAbove:
		words = append(words, "at most", c.High.String(), "above", against)
	case AtMostBelow:
		words = append(words, "at most", c.High.String(), "below", against)
	case Within:
		words = append(words, "within", c.High.String(), "of", against)
	case EachOther:
		words = append(words, "within", c.High.String(), "of each other")
	case Changes:
		words = append(words, "changes")
	case Rises, Falls:
		words = append(append(words, string(c.Relation)), far(c)...)
	case Stays:
		words = append(words, "stays within", c.High.String())
	}
	if c.BetweenLevels() {
		words = append(words, "between", c.From.String(), "and", c.To.String())
	}
	if len(c.Where) > 0 {
		where := make([]string, len(c.Where))
		for i, condition := range c.Where {
			where[i] = condition.String()
		}
		words = append(words, "where", strings.Join(where, ", "))
	}
	return strings.Join(words, " ")
}

// far says how far a clause's networks are above or below, in words.
func far(c Clause) []string {
	switch {
	case c.High != Amount{}:
		return []string{"by", c.Low.String() + ".." + c.High.String()}
	case c.Low != Amount{}:
		return []string{"by", c.Low.String()}
	}
	return nil
}
