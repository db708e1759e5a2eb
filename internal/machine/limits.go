package machine

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// CheckProc says what to do where /proc, from which all that is known of a machine comes, is not there.
func CheckProc() error {
	var at unix.Statfs_t
	if err := unix.Statfs("/proc", &at); err != nil {
		return fmt.Errorf("look at /proc: %w; mount it with mount -t proc proc /proc", err)
	}
	if at.Type != unix.PROC_SUPER_MAGIC {
		return errors.New("/proc is not mounted, from which all that is known of this machine comes; mount it with mount -t proc proc /proc")
	}
	return nil
}

// OpenFiles is how many files this program may have open. The runtime has raised the limit as far as this user may.
func OpenFiles() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return int(min(limit.Cur, math.MaxInt32)), nil
}

// MoreOpenFiles and MoreMemory are how a user raises a limit.
const (
	MoreOpenFiles = "raise the limit of open files: ulimit -n 4096, or LimitNOFILE= of a service"
	MoreMemory    = "free some, or raise the limit of the control group or container"
)

// Shortage is what to do about an error that says that the machine is short of something, "" for other errors.
func Shortage(err error) string {
	switch {
	case errors.Is(err, unix.EMFILE):
		return MoreOpenFiles
	case errors.Is(err, unix.ENFILE):
		return "raise the machine's limit of open files: sysctl -w fs.file-max=1000000"
	case errors.Is(err, unix.ENOMEM):
		return "free some memory, or raise the limit of the control group or container"
	}
	return ""
}
