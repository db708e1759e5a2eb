// Package endtoend uses the program as a user does, on the real system: whole runs, and the short forms
// of the studies with daemons, killed ones among them. Its tests fail when an answer is missing or out of form, and when anything of a run
// is left on the machine.
package endtoend

import (
	"os"
	"testing"

	"netdelta/internal/require"
)

// programVariable names the program that is used.
const programVariable = "NETDELTA_PROGRAM"

// carries has a user do something, after which the machine must be as it was before.
func carries(t *testing.T, name string, do func(*user) error) {
	t.Run(name, func(t *testing.T) {
		program := os.Getenv(programVariable)
		require.Need(t, "a built netdelta in "+programVariable+", as make e2e gives it", program != "")
		u := &user{program: program, folder: t.TempDir()}
		if err := unchanged(func() error { return do(u) }); err != nil {
			t.Error(err)
		}
	})
}

// Runs of the default study. What may happen to a run is the table of make chaos.
func TestRuns(t *testing.T) {
	carries(t, "what is there", (*user).looksAround)
	carries(t, "the default study", (*user).runsDefault)
}

// Runs of the studies with daemons.
func TestServices(t *testing.T) {
	for _, of := range shorts() {
		carries(t, of.study+", "+of.workload, func(u *user) error { return u.runsShort(of) })
	}
	carries(t, "killed services", (*user).killsServices)
}
