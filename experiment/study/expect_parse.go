package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"netdelta/result"
)

// ExpectationError says what is wrong with an expectation, and at which word.
type ExpectationError struct {
	// Offset is where the word begins, in bytes from the beginning; Column the same in characters, from 1. Both are those
	// of the end when something is missing there.
	Offset, Column int
	Problem        string
}

// Error names the column and the problem.
func (e *ExpectationError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.Problem) }

// ParseExpectation reads the language of claims. Networks and workloads are checked in form only: a run may come from a
// program that knew others. Of parameters there are those that all workloads have, and own ones. Every error is an
// *ExpectationError.
func ParseExpectation(s string, own ...result.Parameter) (Expectation, error) {
	return parseExpectation(s, &vocabulary{parameters: result.Parameters(own...)})
}

// parseExpectation also holds names against a vocabulary.
func parseExpectation(s string, v *vocabulary) (Expectation, error) {
	var all Expectation
	for _, words := range clauseTokens(s) {
		p := &expectParser{known: v, words: words, end: len(s)}
		if c := p.clause(); p.err == nil {
			all = append(all, c)
			continue
		}
		p.err.Column = utf8.RuneCountInString(s[:p.err.Offset]) + 1
		return nil, p.err
	}
	return all, nil
}

// token is a word or a sign of an expectation, with where it stands.
type token struct {
	text string
	at   int
}

// clauseTokens splits an expectation into the words of its clauses. The signs , : / < > are words of their own wherever they
// stand, but for a slash in a condition's value. A clause without any word is the token of its semicolon.
func clauseTokens(s string) [][]token {
	var clauses [][]token
	var words []token
	start := -1
	flush := func(end int) {
		if start >= 0 {
			words = append(words, token{s[start:end], start})
		}
		start = -1
	}
	for i, r := range s {
		switch {
		case unicode.IsSpace(r):
			flush(i)
		case r == ';':
			flush(i)
			if words == nil {
				words = []token{{";", i}}
			}
			clauses, words = append(clauses, words), nil
		case strings.ContainsRune(",:<>", r), r == '/' && (start < 0 || !strings.Contains(s[start:i], "=")):
			flush(i)
			words = append(words, token{string(r), i})
		case start < 0:
			start = i
		}
	}
	flush(len(s))
	return append(clauses, words)
}

// expectParser reads a clause word by word. It keeps its first error; what it reads after it is of no use.
type expectParser struct {
	known *vocabulary
	words []token
	end   int // of the text
	last  token
	err   *ExpectationError
}

// peek is the word n places ahead, "" beyond the end.
func (p *expectParser) peek(n int) string {
	if n >= len(p.words) {
		return ""
	}
	return p.words[n].text
}

// at is where the next word begins.
func (p *expectParser) at() int {
	switch {
	case len(p.words) > 0:
		return p.words[0].at
	case p.last.text != "":
		return p.last.at + len(p.last.text)
	}
	return p.end
}

func (p *expectParser) next() string {
	if len(p.words) == 0 {
		return ""
	}
	p.last, p.words = p.words[0], p.words[1:]
	return p.last.text
}

// skip takes the next word if it is this one.
func (p *expectParser) skip(word string) bool {
	if p.peek(0) != word {
		return false
	}
	p.next()
	return true
}

func (p *expectParser) want(words ...string) string {
	at, w := p.at(), p.next()
	if !slices.Contains(words, w) {
		p.fail(at, fmt.Sprintf("want %s, not %s", strings.Join(words, " or "), quoted(w)))
	}
	return w
}

func (p *expectParser) fail(at int, why string) {
	if p.err == nil {
		p.err = &ExpectationError{Offset: at, Problem: why}
	}
}

func quoted(w string) string {
	if w == "" {
		return "the end"
	}
	return printed(w)
}

// clause reads a clause in either form.
func (p *expectParser) clause() Clause {
	var c Clause
	if slices.ContainsFunc(p.words, func(t token) bool { return t.text == ":" }) {
		p.heading(&c)
		p.comparison(&c)
	} else {
		p.metric(&c)
		if w := p.peek(0); w == "rises" || w == "falls" {
			p.correlation(&c)
		} else {
			p.want("of")
			c.Networks = p.names(nil)
			p.relation(&c)
		}
		if p.skip("where") {
			p.conditions(&c)
		}
	}
	if p.err == nil && len(p.words) > 0 {
		p.fail(p.at(), "unexpected "+quoted(p.peek(0)))
	}
	return c
}

func (p *expectParser) metric(c *Clause) {
	at := p.at()
	if c.Metric = p.next(); !slices.Contains(claimMetrics(), c.Metric) {
		p.fail(at, fmt.Sprintf("unknown metric %s: %s", quoted(c.Metric), suggest(c.Metric, claimMetrics())))
	}
}

// relation reads how the networks stand to others.
func (p *expectParser) relation(c *Clause) {
	switch word := p.want("below", "above", "at", "within", "changes", "rises", "falls", "stays"); word {
	case "below", "above":
		c.Relation, c.Against = Relation(word), p.names(c.Networks)
		if p.skip("by") {
			p.span(c)
		}
	case "at":
		p.want("most")
		at := p.at()
		c.High = p.amount(c, p.next(), at)
		c.Relation = AtMostAbove
		if p.want("above", "below") == "below" {
			c.Relation = AtMostBelow
		}
		p.share(c.Relation, c.High, at)
		c.Low, c.Against = c.High, p.names(c.Networks)
	case "within":
		at := p.at()
		c.Relation, c.High = Within, p.amount(c, p.next(), at)
		c.Low = c.High
		p.want("of")
		if at := p.at(); p.skip("each") {
			p.want("other")
			c.Relation = EachOther
			if len(c.Networks) == 1 && c.Networks[0] != Others {
				p.fail(at, "each other takes two networks at least")
			}
		} else {
			c.Against = p.names(c.Networks)
		}
	case "changes":
		c.Relation = Changes
		p.between(c)
	case "rises", "falls":
		if c.Relation = Relation(word); p.skip("by") {
			p.span(c)
		} else if p.skip("at") {
			p.want("least")
			at := p.at()
			c.Low = p.amount(c, p.next(), at)
			p.share(c.Relation, c.Low, at)
		}
		p.between(c)
	case "stays":
		p.want("within")
		at := p.at()
		c.Relation, c.High = Stays, p.amount(c, p.next(), at)
		c.Low = c.High
		p.between(c)
	}
}

// between reads the two levels that a clause is about.
func (p *expectParser) between(c *Clause) {
	p.want("between")
	c.From = p.condition()
	p.want("and")
	at := p.at()
	c.To = p.condition()
	if c.From.Key != c.To.Key {
		p.fail(at, fmt.Sprintf("%s between two levels of one factor, not of %s and %s", c.Relation, c.From.Key, c.To.Key))
	} else if slices.ContainsFunc(c.To.Values, func(v string) bool { return slices.Contains(c.From.Values, v) }) {
		p.fail(at, fmt.Sprintf("%s between two levels, not between a level and itself", c.Relation))
	}
}

// names reads networks, none of which may be among those that they are held against.
func (p *expectParser) names(against []string) []string {
	var names []string
	for {
		at := p.at()
		n := p.name()
		switch {
		case slices.Contains(names, n):
			p.fail(at, fmt.Sprintf("network %s is there twice", n))
		case slices.Contains(against, n):
			p.fail(at, fmt.Sprintf("%s is held against itself", n))
		}
		if names = append(names, n); p.err != nil || !p.skip(",") {
			return names
		}
	}
}

func (p *expectParser) name() string {
	at, n := p.at(), p.next()
	if !claimID(n) {
		p.fail(at, fmt.Sprintf("want the name of a network, not %s", quoted(n)))
	} else if p.known.networks != nil && !slices.Contains(p.known.networks, n) {
		p.fail(at, fmt.Sprintf("unknown network %s: %s", printed(n), suggest(n, p.known.networks)))
	}
	return n
}

// span reads how far a clause's networks are below or above.
func (p *expectParser) span(c *Clause) {
	at, w := p.at(), p.next()
	from, to, ok := strings.Cut(w, "..")
	if c.Low = p.amount(c, from, at); ok {
		c.High = p.amount(c, to, at+len(from)+len(".."))
		if (c.Low.Relative > 0) != (c.High.Relative > 0) || c.Low.Relative > c.High.Relative || c.Low.Absolute > c.High.Absolute {
			p.fail(at, fmt.Sprintf("%s is not a range", quoted(w)))
		}
	}
	p.share(c.Relation, c.Low, at)
	p.share(c.Relation, c.High, at)
}

// share refuses to speak of something that is more than wholly below something else.
func (p *expectParser) share(r Relation, a Amount, at int) {
	if (r == Below || r == AtMostBelow || r == Falls) && a.Relative >= 1 {
		p.fail(at, fmt.Sprintf("nothing is %s below anything: the most is less than 100%%", a))
	}
}

// mostRelative bounds percentages: 10,000%.
const mostRelative = 100

func (p *expectParser) amount(c *Clause, w string, at int) Amount {
	if number, ok := strings.CutSuffix(w, "%"); ok {
		if v, err := strconv.ParseFloat(number, 64); err == nil && v > 0 && v <= 100*mostRelative {
			if share := rounded(v/100, 1e12); share > 0 {
				return Amount{Relative: share}
			}
		}
	} else if d, err := time.ParseDuration(w); err == nil && d > 0 {
		p.timed(c, at)
		return Amount{Absolute: d}
	}
	p.fail(at, fmt.Sprintf("want an amount such as 5%% or 10us, not %s", quoted(w)))
	return Amount{}
}

// timed refuses a time for a metric that is none.
func (p *expectParser) timed(c *Clause, at int) {
	if timeless(c.Metric) {
		p.fail(at, c.Metric+" is not a time: write a percentage")
	}
}

// conditions reads conditions parted by commas.
func (p *expectParser) conditions(c *Clause) {
	for {
		at := p.at()
		if p.where(c, at, p.condition()); p.err != nil || !p.skip(",") {
			return
		}
	}
}

// where adds a condition, one for each factor.
func (p *expectParser) where(c *Clause, at int, one Condition) {
	if slices.ContainsFunc(c.Where, func(o Condition) bool { return o.Key == one.Key }) {
		p.fail(at, fmt.Sprintf("%s is there twice: write %s=A|B for either of two", one.Key, one.Key))
	}
	c.Where = append(c.Where, one)
}

func (p *expectParser) condition() Condition {
	at, w := p.at(), p.next()
	key, value, _ := strings.Cut(w, "=")
	c := Condition{Key: key, Values: strings.Split(value, "|")}
	if _, ok := factorOf(p.known.parameters, key); ok && slices.Contains(c.Values, "") {
		p.fail(at, fmt.Sprintf("%s has no value: write for example placement=same-node", printed(w)))
	} else if part, why := c.problem(p.known); why != "" {
		p.fail(at+max(0, strings.Index(w, part)), why)
	}
	return c
}
