package native

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arena is memory outside the Go heap, resident from the start so that a measured loop meets no page fault.
type Arena struct {
	memory []byte
	used   uintptr
}

// alignment of every allocation: a cache line.
const alignment = 64

// NewArena maps size bytes.
func NewArena(size uintptr) (*Arena, error) {
	page := uintptr(unix.Getpagesize())
	size = (size + page - 1) / page * page
	memory, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for a load engine: %w; free memory or ask for fewer connections or smaller messages", size, err)
	}
	return &Arena{memory: memory}, nil
}

// Reserved is how much of an arena a block of n bytes takes.
func Reserved(n uintptr) uintptr { return (n + alignment - 1) / alignment * alignment }

// Take hands out the next n bytes, zeroed. It panics when the arena is too small: sizes are computed beforehand.
func (a *Arena) Take(n uintptr) unsafe.Pointer {
	if a.used+Reserved(n) > uintptr(len(a.memory)) {
		panic(fmt.Sprintf("native: arena of %d bytes has no room for %d more after %d", len(a.memory), n, a.used))
	}
	p := unsafe.Pointer(&a.memory[a.used])
	a.used += Reserved(n)
	return p
}

// Free unmaps the arena. No thread may use it any more.
func (a *Arena) Free() error {
	if a.memory == nil {
		return nil
	}
	memory := a.memory
	a.memory = nil
	return unix.Munmap(memory)
}
