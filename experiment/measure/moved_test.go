package measure

import (
	"context"
	"errors"
	"testing"

	"netdelta/testbed"
)

// movedBed is a testbed whose endpoint has moved.
type movedBed struct {
	testbed.Testbed

	asked int
}

func (b *movedBed) Instruments() testbed.Instruments {
	return testbed.Instruments{Moved: func(context.Context) error { b.asked++; return errors.New("it was moved") }}
}

// TestMovedOnce: a testbed that serves several settings is asked once where its endpoint is, and all of them have the answer.
func TestMovedOnce(t *testing.T) {
	one, other, known := &movedBed{}, &movedBed{}, map[testbed.Testbed]error{}
	for _, b := range []*movedBed{one, other, one, one} {
		s := Session{testbed: b}
		if err := s.moved(t.Context(), known); err == nil {
			t.Error("it was not told")
		}
	}
	lost := Session{testbed: one, Failed: errors.New("lost connection")}
	if err := lost.moved(t.Context(), known); err == nil || err.Error() != "lost connection; it was moved" {
		t.Errorf("what failed before is told as %v", err)
	}
	if one.asked != 1 || other.asked != 1 {
		t.Errorf("asked %d and %d times", one.asked, other.asked)
	}
}
