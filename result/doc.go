// Package result holds the records of a run: cells, trials, deltas, the environment, and the journal that keeps them on disk.
package result
