package rootless

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Each refusal names what refused, and a fix that fits.
func TestRefused(t *testing.T) {
	const plain, filter = "Name:\tx\nSeccomp:\t0\n", "Name:\tx\nSeccomp:\t2\n"
	for _, c := range []struct {
		name      string
		files     map[string]string
		err       error
		need, fix string
	}{
		{"no such kernel", map[string]string{"self/status": plain}, unix.EINVAL, "CONFIG_USER_NS", "as root"},
		{
			"Debian's setting", map[string]string{"self/ns/user": "", "sys/kernel/unprivileged_userns_clone": "0\n"}, unix.EPERM,
			"kernel.unprivileged_userns_clone=0", "sysctl -w kernel.unprivileged_userns_clone=1",
		},
		{
			"AppArmor", map[string]string{
				"self/ns/user": "", "sys/kernel/unprivileged_userns_clone": "1\n", "sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
			}, unix.EACCES, "AppArmor", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
		},
		{
			"no user namespaces allowed", map[string]string{"self/ns/user": "", "sys/user/max_user_namespaces": "0\n", "sys/user/max_net_namespaces": "9\n"},
			unix.ENOSPC, "user.max_user_namespaces=0", "sysctl -w user.max_user_namespaces=1000",
		},
		{
			"no network namespaces allowed", map[string]string{"self/ns/user": "", "sys/user/max_user_namespaces": "9\n", "sys/user/max_net_namespaces": "0\n"},
			unix.ENOSPC, "user.max_net_namespaces=0", "sysctl -w user.max_net_namespaces=1000",
		},
		{
			"all in use", map[string]string{"self/ns/user": "", "sys/user/max_user_namespaces": "9\n", "sys/user/max_net_namespaces": "9\n"},
			unix.ENOSPC, "nested", "end programs",
		},
		{"nested too deep", map[string]string{"self/ns/user": ""}, unix.EUSERS, "nested", "end programs"},
		{"a container", map[string]string{"self/ns/user": "", "self/status": filter}, unix.EPERM, "seccomp", "--security-opt seccomp=unconfined"},
		{"no telling", map[string]string{"self/ns/user": "", "self/status": plain}, unix.EPERM, "security module", "as root"},
		{
			"settings that allow it", map[string]string{
				"self/ns/user": "", "sys/kernel/unprivileged_userns_clone": "1\n", "sys/kernel/apparmor_restrict_unprivileged_userns": "0\n", "self/status": plain,
			}, unix.EPERM, "security module", "as root",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(proc, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			refused := refusedBy(proc, c.err)
			if !errors.Is(refused, fs.ErrPermission) || !errors.Is(refused, c.err) {
				t.Errorf("%v is not both a lack of permission and what the kernel said", refused)
			}
			if !strings.Contains(refused.Need, c.need) || !strings.Contains(refused.Fix, c.fix) {
				t.Errorf("needs %q, fix %q; want %q and %q in them", refused.Need, refused.Fix, c.need, c.fix)
			}
		})
	}
}

func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"unprivileged_userns_clone", "0", true},
		{"unprivileged_userns_clone", "1", false},
		{"apparmor_restrict_unprivileged_userns", "1", true},
		{"apparmor_restrict_unprivileged_userns", "0", false},
		{"something_else", "0", false},
	} {
		proc := t.TempDir()
		if err := os.MkdirAll(filepath.Join(proc, "sys/kernel"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, "sys/kernel", c.name), []byte(c.value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := forbidden(proc); got != c.want {
			t.Errorf("%s=%s: forbidden is %v", c.name, c.value, got)
		}
	}
}

// A program that can't be started for another reason is not taken for a kernel that refuses namespaces.
func TestRefusal(t *testing.T) {
	if err := Refusal(unix.ENOENT); errors.Is(err, fs.ErrPermission) || !errors.Is(err, unix.ENOENT) {
		t.Errorf("a missing file became %v", err)
	}
	if err := Refusal(&os.PathError{Op: "fork/exec", Path: "x", Err: unix.ENOSPC}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("exhausted namespaces became %v", err)
	}
}
