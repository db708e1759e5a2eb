// Package terminal prints a run for a person: a table for each setting with the conclusion in a sentence, then the
// reliability of the figures, then what to change. The end of the output is what stands on the screen, so the verdicts on the
// run as a whole come last.
package terminal
