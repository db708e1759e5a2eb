package cause

import (
	"path"
	"testing"
)

// Each symptom can be read, says what a reader needs, and is shown by something.
func TestSymptoms(t *testing.T) {
	for _, s := range Symptoms() {
		if s.Says == "" || s.Family == "" || s.Cause == "" || s.Confirm == "" || s.Rank < 1 || s.Rank > 3 {
			t.Errorf("%s lacks a sentence, a family, a cause, a way to confirm it or a rank from 1 to 3: %+v", s.Name, s)
		}
		if len(s.Reads)+len(s.Timers) == 0 && !s.Setting {
			t.Errorf("nothing shows %s", s.Name)
		}
		for _, p := range append(s.Reads, s.Settings...) {
			if _, err := path.Match(p, ""); err != nil {
				t.Errorf("%s: %q: %v", s.Name, p, err)
			}
		}
	}
}
