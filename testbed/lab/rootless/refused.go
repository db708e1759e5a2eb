package rootless

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/testbed"
)

// Refused turns what the kernel said when a user namespace, or the first thing in it, was to be made into an error that names
// what refused it, and the fixes.
func Refused(err error) *testbed.PermissionError { return refusedBy("/proc", err) }

// forbidden tells whether a setting keeps users without root from user namespaces.
func forbidden(proc string) bool {
	return setting(proc, "kernel/unprivileged_userns_clone") == "0" || on(setting(proc, "kernel/apparmor_restrict_unprivileged_userns"))
}

const asRoot = "run it as root"

// refusedBy is Refused with the folder that /proc is mounted on.
func refusedBy(proc string, err error) *testbed.PermissionError {
	refused := &testbed.PermissionError{Doing: "build a lab without root", Err: err}
	switch {
	case missing(filepath.Join(proc, "self/ns/user")):
		refused.Need, refused.Fix = "a kernel with user namespaces (CONFIG_USER_NS)", asRoot
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		refused.Need, refused.Fix = limit(proc)
	case setting(proc, "kernel/unprivileged_userns_clone") == "0":
		refused.Need = "user namespaces for ordinary users, which kernel.unprivileged_userns_clone=0 forbids"
		refused.Fix = asRoot + ", or allow them with sysctl -w kernel.unprivileged_userns_clone=1"
	case on(setting(proc, "kernel/apparmor_restrict_unprivileged_userns")):
		refused.Need = "user namespaces for ordinary users, which AppArmor forbids (kernel.apparmor_restrict_unprivileged_userns)"
		refused.Fix = asRoot + ", give this program an AppArmor profile with the rule \"userns,\", or allow them with sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case filtered(proc):
		refused.Need = "user namespaces, which a filter of system calls (seccomp) forbids: this seems to be a container"
		refused.Fix = "run it outside the container, or start the container with --privileged or --security-opt seccomp=unconfined"
	default:
		refused.Need = "user namespaces, which a security module (SELinux, say), a chroot or the kernel forbids"
		refused.Fix = asRoot
	}
	return refused
}

// limit says which number of namespaces is exhausted. Each user namespace has limits of its own, and so has each above it
// count too; the values are those that hold here.
func limit(proc string) (need, fix string) {
	for _, kind := range []string{"user", "net"} {
		name := "max_" + kind + "_namespaces"
		if most, err := strconv.Atoi(setting(proc, "user/"+name)); err == nil && most == 0 {
			return fmt.Sprintf("namespaces for this user, which user.%s=0 forbids", name),
				fmt.Sprintf("%s, or allow them with sysctl -w user.%s=1000", asRoot, name)
		}
	}
	return "more namespaces than user.max_user_namespaces and user.max_net_namespaces leave to this user, or user namespaces nested less deep",
		"end programs that hold some (containers, browsers), raise the limits with sysctl -w, or " + asRoot
}

// setting is the value of a setting of the kernel, "" for one that it has not got or does not tell.
func setting(proc, path string) string {
	value, err := os.ReadFile(filepath.Join(proc, "sys", path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(value))
}

func on(value string) bool { return value != "" && value != "0" }

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// filtered tells whether system calls of this process go through a filter.
func filtered(proc string) bool {
	status, err := os.ReadFile(filepath.Join(proc, "self/status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:"); ok {
			return strings.TrimSpace(mode) == "2"
		}
	}
	return false
}
