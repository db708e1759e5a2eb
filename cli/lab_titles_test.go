package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

// What runs in a lab ends with it also where it has left its parents, writes a title over its environment, and works as another user.
// It is found when the lab is taken down, and by a clean-up when the lab's keeper was killed.
func TestLabEndsWhatHides(t *testing.T) {
	nginx := require.Tool(t, "nginx")
	for name, end := range map[string]func(t *testing.T, u *user){
		"down": func(t *testing.T, u *user) { u.call(t, statusDone, "lab", "down") },
		"cleanup": func(t *testing.T, u *user) {
			require.NoError(t, syscall.Kill(labsOf(t, u)[0].PID, syscall.SIGKILL))
			nothingRuns(t)
			u.call(t, statusDone, "cleanup").shows(t, "removed process nginx")
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachUser(t, func(t *testing.T, u *user) {
				u.call(t, statusDone, "lab", "up", "bridge", "--nodes", "1")
				conf, number := filepath.Join(u.dir, "nginx.conf"), filepath.Join(u.dir, "nginx.pid")
				text := fmt.Sprintf("pid %s;\nerror_log %s;\nevents {}\n", number, filepath.Join(u.dir, "nginx.log"))
				worker := "nobody nogroup"
				if u.rootless { // there are no others in the user's namespace
					worker = "root root"
				}
				write(t, conf, "user "+worker+";\n"+text)
				u.call(t, statusDone, "lab", "exec", "pod1", "--", nginx, "-c", conf, "-e", filepath.Join(u.dir, "nginx.log"))
				ends := endsOf(t, number)
				end(t, u)
				for pid, fd := range ends {
					if !owner.Ended(fd, patience/4) {
						t.Errorf("process %d runs still", pid)
					}
				}
			})
		})
	}
}

// endsOf waits until a service has a worker and has hidden its environment, and returns descriptors of both processes by number. They
// are killed after the test.
func endsOf(t *testing.T, number string) map[int]int {
	t.Helper()
	all := map[int]int{}
	if !eventually(func() bool {
		text, err := os.ReadFile(number)
		if err != nil {
			return false
		}
		master, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return false
		}
		below, err := procfile.Below(master)
		if _, marked := owner.ProcessOf(master); err != nil || marked || len(below) == 0 {
			return false
		}
		for _, pid := range append(below, master) {
			fd, err := unix.PidfdOpen(pid, 0)
			require.NoError(t, err)
			all[pid] = fd
			t.Cleanup(func() {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // it should have ended
				_ = unix.Close(fd)
			})
		}
		return true
	}) {
		t.Fatal("the service has not begun, or its environment is to be seen")
	}
	return all
}
