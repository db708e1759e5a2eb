// Package experiment carries a study out. Prepare expands the study into cells and fits them into its time budget, Assemble adds what
// they are measured with, and Run measures them build by build, by a strategy, and writes each finished trial to the run folder.
package experiment
