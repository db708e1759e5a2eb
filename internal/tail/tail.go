// Package tail keeps the end of what a program says, for the errors that are made of it.
package tail

import "sync"

// Tail keeps the last bytes of what is written to it. It may be written and read at once.
type Tail struct {
	most int

	mu   sync.Mutex
	kept []byte
}

// New keeps at most so many bytes, one or more.
func New(most int) *Tail { return &Tail{most: most} }

// Write implements io.Writer. It never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

// String is what was kept. It may begin amid a character.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
