package plan

import "math/rand/v2"

// Order is the order in which n cells are visited in a round: a permutation of 0 to n-1, the same for the same seed, build
// and round, and independent of all others.
func Order(seed uint64, build, round, n int) []int {
	return rand.New(rand.NewPCG(scramble(seed^scramble(uint64(build))), uint64(round))).Perm(n)
}

// scramble spreads neighbouring numbers over all 64 bits (the finalizer of splitmix64), so that a seed and a build never add
// up to the same as another seed and build.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
