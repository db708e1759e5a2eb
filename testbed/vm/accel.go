package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/testbed/vm/image"
)

// kvmPatience is how long a kernel may take under KVM to find that it has nothing to run: a second where KVM works.
const kvmPatience = 10 * time.Second

// Accelerator finds out by trial what guests can run on here. The answer is kept in the folder of the images until this machine reboots.
func Accelerator(ctx context.Context, i image.Image) (Accel, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the kernel's boot id: %w", err)
	}
	key := strings.TrimSpace(string(boot)) + " " + i.ID()
	kept := filepath.Join(filepath.Dir(i.Dir), "accelerator")
	if text, err := os.ReadFile(kept); err == nil {
		if of, answer, ok := strings.Cut(strings.TrimSpace(string(text)), ": "); ok && of == key && (Accel(answer) == KVM || Accel(answer) == TCG) {
			return Accel(answer), nil
		}
	}
	answer := TCG
	switch works, err := tryKVM(ctx, i); {
	case err != nil:
		return "", err
	case works:
		answer = KVM
	}
	// Where it can't be kept it is found out again.
	_ = os.WriteFile(kept, []byte(key+": "+string(answer)+"\n"), 0o644)
	return answer, nil
}

// tryKVM boots a kernel that has nothing to run, so that it ends at once. Where KVM exists but does not work it hangs.
func tryKVM(ctx context.Context, i image.Image) (bool, error) {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false, nil // there is none, or it is not for this user: then it is not for us
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, kvmPatience)
	defer cancel()
	path, args, env := i.Emulator()
	cmd := exec.CommandContext(limited, path, append(args, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
		"-M", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256M", "-kernel", i.KernelFile(), "-append", "panic=-1 reboot=t")...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	err = cmd.Run()
	if ctx.Err() != nil {
		return false, fmt.Errorf("try KVM: %w", ctx.Err())
	}
	var refused *exec.ExitError
	if err != nil && !errors.As(err, &refused) && limited.Err() == nil {
		return false, fmt.Errorf("try KVM: %w", err)
	}
	return err == nil, nil
}
