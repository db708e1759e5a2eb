//go:build !amd64

package clock

const haveCounter = false

//go:nosplit
//go:norace
func readCounter() int64 { return nanotime() }
