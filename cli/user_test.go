package cli_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"netdelta/internal/require"
	"netdelta/testbed/lab/rootless"
)

// ordinaryID is the number of a user without rights, who need not have a name.
const ordinaryID = 54321

// user is somebody who calls the program, with a folder of their own.
type user struct {
	name     string
	rootless bool
	dir      string // has the studies, and is the user's home
	labs     string // where labs are recorded
	temp     string
}

// rootUser has all rights.
func rootUser(t *testing.T) *user {
	t.Helper()
	require.Namespaces(t)
	return newUser(t, "root", false)
}

// ordinaryUser has none. Where the tests run without root it is the one who runs them.
func ordinaryUser(t *testing.T) *user {
	t.Helper()
	require.Need(t, "user namespaces for users without root", rootless.Try() == nil)
	return newUser(t, "ordinary", true)
}

// eachUser runs a test for root and for a user without rights.
func eachUser(t *testing.T, test func(t *testing.T, u *user)) {
	t.Run("root", func(t *testing.T) { test(t, rootUser(t)) })
	t.Run("rootless", func(t *testing.T) { test(t, ordinaryUser(t)) })
}

func newUser(t *testing.T, name string, without bool) *user {
	t.Helper()
	dir := t.TempDir()
	open(t, dir)
	u := &user{name: name, rootless: without, dir: dir, labs: filepath.Join(dir, "labs"), temp: filepath.Join(dir, "tmp")}
	write(t, filepath.Join(dir, "small.yaml"), smallStudy)
	write(t, filepath.Join(dir, "long.yaml"), longStudy)
	if err := os.Mkdir(u.temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if u.credential() != nil {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(path, ordinaryID, ordinaryID)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		// A test that failed leaves nothing either.
		_ = u.command(t, "lab", "down", "--all").Run()
		nothingRuns(t)
	})
	return u
}

// credential is what makes a process the user's, nil where it is already.
func (u *user) credential() *syscall.Credential {
	if !u.rootless || os.Geteuid() != 0 {
		return nil
	}
	return &syscall.Credential{Uid: ordinaryID, Gid: ordinaryID}
}

// id is the number that files of the user have.
func (u *user) id() int {
	if c := u.credential(); c != nil {
		return int(c.Uid)
	}
	return os.Geteuid()
}

// command prepares a call of the program by the user, in their folder.
func (u *user) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, u.dir, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential()}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + u.dir, "TMPDIR=" + u.temp, "NETDELTA_LABS=" + u.labs, "LANG=C.UTF-8", "SHELL=/bin/sh", "TERM=dumb",
	}
	return cmd
}

// call runs the program for the user and fails the test unless it ends with the status.
func (u *user) call(t *testing.T, status int, args ...string) ending {
	t.Helper()
	return finish(t, u.command(t, args...)).want(t, status)
}

// start starts a call whose outputs are kept in buffers.
func (u *user) start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return begin(t, u.command(t, args...))
}

// nothingKept fails the test for each file that the program left: records of labs and temporary files.
func (u *user) nothingKept(t *testing.T) {
	t.Helper()
	for _, dir := range []string{u.labs, u.temp} {
		if left := entries(t, dir); len(left) > 0 {
			t.Errorf("%q are left in %s", left, dir)
		}
	}
}
