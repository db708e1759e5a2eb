// Package fleet measures a network under many clients at once: hundreds of agents begin together on a common instant, each sends
// what it measured as one histogram, and the histograms are merged as they come, so that what is kept depends neither on the
// number of agents nor on how often they fire. A client that fails costs its own part and nothing else, and is named.
package fleet
