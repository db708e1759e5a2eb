// Package gather makes lists of the elements of others, and remembers what functions return.
package gather

import (
	"slices"
	"sync"
)

// Each returns f of each element, in their order; nil for no element.
func Each[T, R any](all []T, f func(T) R) []R {
	if len(all) == 0 {
		return nil
	}
	gathered := make([]R, len(all))
	for i, one := range all {
		gathered[i] = f(one)
	}
	return gathered
}

// Where returns the elements that are so, in their order; nil for none.
func Where[T any](all []T, is func(T) bool) (gathered []T) {
	for _, one := range all {
		if is(one) {
			gathered = append(gathered, one)
		}
	}
	return gathered
}

// Once returns the elements and one more, unless it is among them.
func Once[T comparable](all []T, one T) []T {
	if slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}

// First is the first element that is so, false if none is.
func First[T any](all []T, is func(T) bool) (first T, found bool) {
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return first, false
	}
	return all[i], true
}

// Sum adds up the values of a map.
func Sum[K comparable](counts map[K]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// Remembered gives what a function returns, which is called once for each two arguments; where two goroutines ask for the same at once, by both.
func Remembered[A, B comparable, R any](f func(A, B) R) func(A, B) R {
	type both struct {
		a A
		b B
	}
	var known sync.Map
	return func(a A, b B) R {
		r, is := known.Load(both{a, b})
		if !is {
			r = f(a, b)
			known.Store(both{a, b}, r)
		}
		return r.(R)
	}
}
