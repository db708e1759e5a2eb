package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"netdelta/internal/require"
)

// On a terminal the user is asked once: a no ends the call, a yes is remembered until what was agreed to changes.
func TestTrustIsAskedOnce(t *testing.T) {
	dir := labFolder(t)
	write(t, filepath.Join(dir, "list.conflist"), `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "absent"}]}`)
	write(t, filepath.Join(dir, "plugins.yaml"), "study: plugins\nbaseline: cni:list.conflist\nnetworks: [\"cni:list.conflist\", host]\nworkloads: [tcp-rr]\n")
	say := func(status int, answer string) {
		t.Helper()
		m := openTerminal(t)
		cmd := command(t, dir, "run", "plugins.yaml")
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=")
		m.start(cmd)
		if answer != "" {
			m.expect("the CNI plugins of list.conflist are run")
			m.expect("Carry it out? You are asked once. [y/N] ")
			m.write(answer + "\n")
		}
		if got := m.wait(); got != status {
			t.Errorf("answer %q: exit status %d, want %d\n%s", answer, got, status, m.text.String())
		}
	}
	say(statusUsage, "n")
	say(statusNothing, "y") // this machine has no such plugin
	say(statusNothing, "")
	write(t, filepath.Join(dir, "list.conflist"), `{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "other"}]}`)
	say(statusUsage, "no")
}

// A file of another user is said to be one, and that alone asks nothing.
func TestForeignStudy(t *testing.T) {
	require.Need(t, "root, to give a file to another user", os.Geteuid() == 0)
	dir := labFolder(t)
	if err := os.Chown(filepath.Join(dir, "small.yaml"), 12345, 12345); err != nil {
		t.Fatal(err)
	}
	call(t, dir, statusDone, "run", "small.yaml", "--networks", "host", "--builds", "3", "--quiet", "--out", "own").says(t, "small.yaml belongs to user 12345")
	cmd := command(t, dir, "run", "small.yaml", "--networks", "host", "--builds", "3", "--quiet", "--out", "run")
	cmd.Env = append(os.Environ(), "SUDO_UID=12345")
	if e := finish(t, cmd).want(t, statusDone); e.stderr != "run folder: run\nreport: run/report.html\n" {
		t.Errorf("standard error has more than the run's folder:\n%s", e.stderr)
	}
}
