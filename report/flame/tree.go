package flame

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/probe/flame"
)

// Unit is what time is counted for: without it two profiles of different length can't be compared.
type Unit struct {
	// Name is what one of it is: "transaction", "GB".
	Name string
	// Count is how many there were while the profile was taken.
	Count float64
}

// Side is one of the networks of a page.
type Side struct {
	Network string
	Profile flame.Profile
	Per     Unit
}

// node is a function under the functions that called it, with the time that it took on each side, in nanoseconds per unit.
type node struct {
	name     string
	kernel   bool
	time     [2]float64
	children []*node
	known    map[string]*node
}

func (n *node) child(name string, kernel bool) *node {
	key := name
	if kernel {
		key += "\x00"
	}
	if n.known == nil {
		n.known = map[string]*node{}
	}
	c := n.known[key]
	if c == nil {
		c = &node{name: name, kernel: kernel}
		n.known[key] = c
		n.children = append(n.children, c)
	}
	return c
}

// treeOf joins the samples of all sides. Idle time has a branch of its own, as each space has.
func treeOf(sides []Side) *node {
	root := &node{name: "all processors"}
	for i, s := range sides {
		for _, sample := range s.Profile.Samples {
			time := s.per(float64(sample.Ticks) * float64(s.Profile.Period))
			at := root
			at.time[i] += time
			for _, step := range stepsOf(sample) {
				at = at.child(step.Function, step.Kernel)
				at.time[i] += time
			}
		}
	}
	root.sort()
	return root
}

// per is a time for one unit.
func (s Side) per(nanoseconds float64) float64 {
	if s.Per.Count <= 0 {
		return nanoseconds
	}
	return nanoseconds / s.Per.Count
}

// idle is the name of the time in which there was nothing to do.
const idle = "idle"

// stepsOf is a sample's way from the root.
func stepsOf(s flame.Sample) []flame.Frame {
	switch {
	case s.Idle:
		return append([]flame.Frame{{Function: idle}}, s.Stack...)
	case !s.Testbed():
		return []flame.Frame{{Function: s.Space}, {Function: s.Process}} // whatever it does, it is not about the network
	}
	return append([]flame.Frame{{Function: s.Space}, {Function: s.Process}}, folded(s.Stack)...)
}

// runtimeFrame stands for the functions of a program's runtime that call one another: of Go, of the C library and of threads.
const runtimeFrame = "[runtime]"

// folded is a stack with each chain of frames of the runtime as one: how a program gets from its start to a system call is not about the
// network.
func folded(stack []flame.Frame) []flame.Frame {
	var kept []flame.Frame
	for _, f := range stack {
		if ofRuntime(f) {
			f.Function = runtimeFrame
			if len(kept) > 0 && kept[len(kept)-1] == f {
				continue
			}
		}
		kept = append(kept, f)
	}
	return kept
}

// ofRuntime says whether a frame is of a program's runtime.
func ofRuntime(f flame.Frame) bool {
	prefixes := []string{"runtime.", "runtime/", "internal/runtime", "syscall.", "internal/syscall", "internal/poll.", "__libc_", "__GI_", "pthread_", "start_thread", "clone3", "__clone", "_start"}
	return !f.Kernel && slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(f.Function, prefix) })
}

// sort orders all children by name, as flame graphs do, so that the same function is at the same place on both sides; what is
// no part of the testbed stands last.
func (n *node) sort() {
	last := map[string]int{flame.Elsewhere: 1, idle: 2}
	slices.SortFunc(n.children, func(a, b *node) int {
		return cmp.Or(cmp.Compare(last[a.name], last[b.name]), strings.Compare(a.name, b.name))
	})
	for _, c := range n.children {
		c.sort()
	}
}

// packed is the tree in as few bytes as JSON lets it: a table of names, and nodes of [name, kernel, time, time, children].
type packed struct {
	Names []string `json:"names"`
	Root  []any    `json:"root"`
}

func (n *node) pack() ([]byte, error) {
	p := packed{}
	numbers := map[string]int{}
	var write func(n *node) []any
	write = func(n *node) []any {
		number, known := numbers[n.name]
		if !known {
			number = len(p.Names)
			numbers[n.name] = number
			p.Names = append(p.Names, n.name)
		}
		kernel := 0
		if n.kernel {
			kernel = 1
		}
		entry := []any{number, kernel, rounded(n.time[0]), rounded(n.time[1])}
		children := gather.Each(n.children, func(c *node) any { return write(c) })
		if children != nil {
			entry = append(entry, children)
		}
		return entry
	}
	p.Root = write(n)
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("pack the flame graph: %w", err)
	}
	return text, nil
}

// rounded keeps a hundredth of a nanosecond; what is no number is 0.
func rounded(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*100) / 100
}
