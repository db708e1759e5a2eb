// Package stats turns paired measurements into estimates, p values and verdicts. It is pure: samples in, estimates
// out, no clock, no files, and all randomness from a seed that the caller passes.
//
// The unit of replication is the build, not the burst: two builds of one network differ by more than the bursts
// within a build show, so an interval over bursts would be too narrow. docs/statistics.md has the model, and the
// simulations by which each method here was chosen.
package stats
