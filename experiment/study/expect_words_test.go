package study

import (
	"strconv"
	"strings"
)

// String writes the expectation in words; ParseExpectation reads it back as the same.
func (e Expectation) String() string {
	clauses := make([]string, len(e))
	for i, c := range e {
		clauses[i] = c.String()
	}
	return strings.Join(clauses, "; ")
}

// String writes the clause in words.
func (c Clause) String() string {
	words := []string{c.Metric, "of", strings.Join(c.Networks, ", ")}
	against := strings.Join(c.Against, ", ")
	switch c.Relation {
	case Below, Above:
		words = append(append(words, string(c.Relation), against), c.far()...)
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
		words = append(append(words, string(c.Relation)), c.far()...)
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
func (c Clause) far() []string {
	switch {
	case c.High != Amount{}:
		return []string{"by", c.Low.String() + ".." + c.High.String()}
	case c.Low != Amount{}:
		return []string{"by", c.Low.String()}
	}
	return nil
}

// String is the amount as it is written: "5%", "10us".
func (a Amount) String() string {
	if a.Absolute != 0 {
		return strings.Replace(FormatDuration(a.Absolute), "µ", "u", 1)
	}
	return strconv.FormatFloat(rounded(100*a.Relative, 1e10), 'f', -1, 64) + "%"
}
