package endtoend

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// looksAround asks for what needs no run.
func (u *user) looksAround() error {
	for _, arguments := range [][]string{{"--version"}, {"--help"}, {"doctor"}, {"list"}, {"cleanup"}} {
		out, err := u.call(arguments...)
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(out)) == 0 {
			return fmt.Errorf("netdelta %s prints nothing", arguments[0])
		}
		if err := u.full(arguments); err != nil {
			return err
		}
	}
	return nil
}

// full calls the program with an output that takes nothing, as a full disk does: that must not pass for success.
func (u *user) full(arguments []string) error {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	var complaints bytes.Buffer
	cmd := u.command(nil, &complaints, arguments...)
	cmd.Stdout = full
	if err := errors.Join(cmd.Run(), full.Close()); err == nil {
		return fmt.Errorf("netdelta %s > /dev/full reports success", arguments[0])
	}
	if !bytes.Contains(complaints.Bytes(), []byte("no space left")) {
		return fmt.Errorf("netdelta %s > /dev/full does not say what went wrong: %q", arguments[0], complaints.String())
	}
	return nil
}

// budget is the promise of a first answer, and grace what a machine that has other work may add to it.
const (
	budget = time.Minute
	grace  = 30 * time.Second
)

// runsDefault runs the default study and reads its answers in every form.
func (u *user) runsDefault() error {
	folder := filepath.Join(u.folder, "default")
	began := time.Now()
	out, err := u.call("run", "--time-budget", budget.String(), "--out", folder, "--json")
	if err != nil {
		return err
	}
	took := time.Since(began)
	if took > budget+grace {
		return fmt.Errorf("a budget of %s took %s", budget, took.Round(time.Second))
	}
	a, err := read(out)
	if err != nil {
		return err
	}
	resolved := a.networks()
	fmt.Printf("  %d deltas in %s; networks with an interval for p50: %s\n", len(a.Deltas), took.Round(time.Second), strings.Join(resolved, " "))
	if len(resolved) < 3 {
		return fmt.Errorf("only %d networks have an interval for p50", len(resolved))
	}
	shown, err := u.call("show", folder)
	if err != nil {
		return err
	}
	for _, name := range resolved {
		if !bytes.Contains(shown, []byte(name)) {
			return fmt.Errorf("show does not name %s", name)
		}
	}
	for _, file := range []string{"study.yaml", "environment.json", "trials.jsonl", "result.json"} {
		if info, err := os.Stat(filepath.Join(folder, file)); err != nil || info.Size() == 0 {
			return fmt.Errorf("the run folder has no %s, or nothing in it", file)
		}
	}
	return nil
}

// small is a run that takes seconds.
func small(folder string) []string {
	return []string{
		"run", "--networks", "host,bridge", "--workloads", "tcp-rr", "--placement", "cross-node", "--time-budget", "12s", "--out", folder, "--json",
	}
}

// runsTwice runs two labs side by side.
func (u *user) runsTwice() error {
	var both errgroup.Group
	for _, name := range []string{"left", "right"} {
		both.Go(func() error {
			out, err := u.call(small(filepath.Join(u.folder, name))...)
			if err == nil {
				_, err = read(out)
			}
			return err
		})
	}
	return both.Wait()
}

// killsAndResumes kills a run early and late, cleans up, and lets it go on: no finished trial may be lost.
func (u *user) killsAndResumes() error {
	for _, after := range []time.Duration{500 * time.Millisecond, 4 * time.Second, 8 * time.Second} {
		folder := filepath.Join(u.folder, "killed-"+after.String())
		if err := u.resumes(folder, after); err != nil {
			return fmt.Errorf("killed after %s: %w", after, err)
		}
	}
	return nil
}

func (u *user) resumes(folder string, after time.Duration) error {
	if err := u.killed(after, small(folder)); err != nil {
		return err
	}
	kept, err := finished(folder)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "study.yaml")); errors.Is(err, os.ErrNotExist) {
		fmt.Printf("  killed after %s: before there was a run folder\n", after)
		return nil
	}
	text, err := u.call("run", "--resume", folder, "--json")
	if err != nil {
		return err
	}
	if _, err := read(text); err != nil {
		return err
	}
	all, err := finished(folder)
	if err != nil {
		return err
	}
	for _, line := range kept {
		if !slices.Contains(all, line) {
			return fmt.Errorf("a finished trial is lost: %.80s", line)
		}
	}
	fmt.Printf("  killed after %s: %d trials kept, %d in the end\n", after, len(kept), len(all))
	return nil
}

// finished are the whole lines of a journal; none when there is no journal yet.
func finished(folder string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "trials.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(text), "\n")
	return lines[:len(lines)-1], nil // what follows the last line feed is torn, or empty
}
