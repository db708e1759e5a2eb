package unit

import (
	"fmt"
	"strings"
)

// Thousands prints a count with a comma before each three digits: 1,234.
func Thousands[N int | int64 | uint64](n N) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Counted is a count with its noun, given for one: "1 trial", "2,000 trials", "3 policies".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	stem, irregular := strings.CutSuffix(noun, "y")
	if irregular {
		return Thousands(n) + " " + stem + "ies"
	}
	return Thousands(n) + " " + noun + "s"
}
