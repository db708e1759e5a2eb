package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/require"
)

// A control group with too little room for threads is refused by its file, limit and use, wherever in the hierarchy it is.
func TestGroupTasks(t *testing.T) {
	for name, c := range map[string]struct {
		most, used, says string
	}{
		"room":      {"200", "100", ""},
		"unlimited": {"max", "100", ""},
		"nearly":    {"163", "100", "allows 163 processes"},
		"full":      {"20", "20", "of which 20 are there"},
		"beyond":    {"10", "20", "--pids-limit"},
		"unknown":   {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			top, inner := t.TempDir(), t.TempDir()
			for file, text := range map[string]string{"pids.max": c.most, "pids.current": c.used} {
				if text != "" {
					require.NoError(t, os.WriteFile(filepath.Join(top, file), []byte(text+"\n"), 0o600))
				}
			}
			err := checkGroupTasks([]ControlGroup{{inner, true}, {top, true}})
			if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), top)) {
				t.Errorf("got error %v, want one that says %q", err, c.says)
			}
		})
	}
}
