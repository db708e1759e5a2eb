// Package experiment carries a study out: it sets the networks up side by side, visits the cells in bursts in random order,
// build after build, and writes each finished trial to the run folder before it goes on.
package experiment
