package cli

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"netdelta/experiment/study"
	"netdelta/internal/owner"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed/lab/rootless"
	"netdelta/unit"
)

// trustFlag has a study carried out whatever it asks for.
const trustFlag = "trust"

// trustUsage describes the flag.
const trustUsage = "carry out what the study asks for beyond measuring (commands, CNI plugins, targets) without asking"

// trusts tells the user whose a study is and what it asks for beyond measuring, and returns an error unless that may be carried out:
// the flag says so, the user said so of the same demands before, or says so now, on a terminal.
func (env *environment) trusts(ctx context.Context, file string, demands []study.Demand, given bool) error {
	if owner := foreign(file, env.getenv); owner != "" {
		fmt.Fprintf(env.err, "%s belongs to %s, not to you\n", ui.Clean(file), ui.Clean(owner))
	}
	if len(demands) == 0 || given || env.remembers(demands) {
		return nil
	}
	fmt.Fprintf(env.err, "%s asks for more than measuring:\n", ui.Clean(file))
	for _, d := range demands {
		fmt.Fprintf(env.err, "  %s\n", ui.Clean(d.Says))
	}
	yes, err := env.agrees(ctx)
	if err != nil {
		return err
	}
	if !yes {
		return usageError{fmt.Errorf("%s is not carried out: read it and, if you trust its author, call netdelta with --%s", file, trustFlag)}
	}
	env.remember(demands)
	return nil
}

// agrees asks the user. Where there is no terminal to ask on, the answer is no.
func (env *environment) agrees(ctx context.Context) (bool, error) {
	in, typed := env.in.(*os.File)
	out, shown := env.console.(*os.File)
	if !typed || !shown || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return false, nil
	}
	fmt.Fprint(env.err, "Carry it out? You are asked once. [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // no answer is one, too
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case said := <-answer:
		return said == "y" || said == "yes", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// foreign is the owner of a file if it is neither the user, nor the user who became root by sudo, nor root; else "".
func foreign(file string, getenv func(string) string) string {
	info, err := os.Stat(file)
	if _, entered := rootless.Entered(); err != nil || entered { // a user namespace knows no users but one
		return ""
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is || stat.Uid == 0 || int(stat.Uid) == os.Geteuid() || strconv.Itoa(int(stat.Uid)) == getenv("SUDO_UID") {
		return ""
	}
	return fmt.Sprintf("user %d", stat.Uid)
}

// trustMark is the file that says that the user trusts these demands, with what their files have in them now.
func (env *environment) trustMark(demands []study.Demand) (string, error) {
	folder, err := owner.StateFolder(env.getenv, "trusted")
	if err != nil {
		return "", err
	}
	if err := owner.CheckFolder(folder, owner.StateVariable); err != nil {
		return "", err // what another user trusts says nothing
	}
	sum := sha256.New()
	for _, d := range demands {
		content := []byte(nil)
		if d.File != "" {
			if content, err = result.ReadFile(d.File, 16*unit.MiB); err != nil {
				content = []byte("none")
			}
		}
		_, _ = fmt.Fprintf(sum, "%q %x\n", d.Says, sha256.Sum256(content)) // a hash takes everything
	}
	return filepath.Join(folder, fmt.Sprintf("%x", sum.Sum(nil))), nil
}

func (env *environment) remembers(demands []study.Demand) bool {
	mark, err := env.trustMark(demands)
	if err == nil {
		_, err = os.Lstat(mark)
	}
	return err == nil
}

// remember keeps an answer for the next time. Where it can't be kept the user is asked again.
func (env *environment) remember(demands []study.Demand) {
	if err := env.keepAnswer(demands); err != nil {
		printError(env.err, fmt.Sprintf("the answer is not kept, and will be asked for again: %v", err))
	}
}

func (env *environment) keepAnswer(demands []study.Demand) error {
	mark, err := env.trustMark(demands)
	if err != nil {
		return nil //nolint:nilerr // there is no place for it
	}
	if home := env.getenv("HOME"); home != "" {
		if _, err := os.Stat(home); err != nil {
			return nil //nolint:nilerr // a home that there is not is not made
		}
	}
	if err = os.MkdirAll(filepath.Dir(mark), 0o700); err != nil {
		return nil //nolint:nilerr // as in a pod whose files can't be written
	}
	return result.KeepFile(mark, nil)
}
