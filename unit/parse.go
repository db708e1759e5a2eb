package unit

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSyntax marks text that is not a quantity of the wanted kind. Match it with errors.Is.
var ErrSyntax = errors.New("not a quantity")

// SyntaxError says which text could not be read, why, and what a right one looks like.
type SyntaxError struct {
	Kind    string // what was wanted: "size" or "rate"
	Input   string // the text as given
	Why     string // what is wrong with it
	Example string // a text that would have been accepted
}

// Error names the input and gives an example of a right one.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("parsing %s %q: %s; write for example %s", e.Kind, e.Input, e.Why, e.Example)
}

// Is reports whether target is ErrSyntax.
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// split cuts a quantity into its number and its suffix: "1.5 MiB" gives "1.5" and "MiB". The number is
// plain decimal: an exponent would make "1e3" and "1E" (exa) hard to distinguish.
func split(s string) (number, suffix string) {
	s = strings.TrimSpace(s)
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' || end == 0 && (s[end] == '-' || s[end] == '+')) {
		end++
	}
	return s[:end], strings.TrimSpace(s[end:])
}

// numberProblem says what is wrong with the text of a number, or "" when it is a plain decimal, not negative.
func numberProblem(number string) string {
	switch {
	case !strings.ContainsAny(number, "0123456789"):
		return "it does not start with a number"
	case number[0] == '-':
		return "it is negative"
	case strings.Count(number, ".") > 1:
		return "it has more than one decimal point"
	}
	return ""
}
