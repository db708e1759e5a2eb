// Command fleet measures what a controller of many agents takes: memory, processor time, time to start, and how far apart agents
// begin that are to begin together. All agents are real processes, in pods of a lab that they share; each size has a controller of
// its own. Each figure is printed with its ratio to a reference measured in the same run: starting as many processes that do
// nothing, and keeping every histogram in place of merging it. It fails when memory grows with the number of bursts.
package main
