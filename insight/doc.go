// Package insight turns trials into deltas, checks, conclusions and advice. It is pure: records in, records out.
//
// Trials of the same build that were measured together are paired round by round: the delta of a round is the logarithm
// of a cell's burst less the mean of the logarithms of the bursts of the baseline and of its twin. A round counts when all
// three are there and undisturbed; in a build without the twin (or without the baseline) the other one stands alone. A
// build's rounds are one replication; package stats makes the estimate over builds. The null check is the same, with the
// baseline's twin against the baseline.
//
// Claims hold networks against each other in the same way, without the baseline in between: see Claims.
package insight
