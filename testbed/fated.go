package testbed

// Fated is a process that can be lost with the pod that it runs in, or with the way to it.
type Fated interface {
	// Fate says what became of the process, as far as its testbed can tell: "its pod was evicted: ...". It is "" while nothing is
	// known to have happened.
	Fate() string
}
