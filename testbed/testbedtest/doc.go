// Package testbedtest is the suite that each testbed driver has to pass, and the peer: a small program for the pods of tests,
// which is the test's own binary started again.
package testbedtest
