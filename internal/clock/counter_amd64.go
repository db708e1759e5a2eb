package clock

const haveCounter = true

// readCounter reads the time stamp counter. It is not ordered against the instructions around it: what it times are system
// calls, which are.
//
//go:noescape
func readCounter() int64
