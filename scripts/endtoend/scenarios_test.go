package endtoend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
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
	// The best and the worst network are looked at more closely afterwards.
	for _, file := range []string{"study.yaml", "environment.json", "trials.jsonl", "result.json", "hops.json", "flame.json"} {
		if info, err := os.Stat(filepath.Join(folder, file)); err != nil || info.Size() == 0 {
			return fmt.Errorf("the run folder has no %s, or nothing in it", file)
		}
	}
	if err := u.takesAdvice(folder); err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(folder, "report.html"))
	if err == nil && !(bytes.Contains(page, []byte("Where the time goes")) && bytes.Contains(page, []byte(`href="flame/`))) {
		err = errors.New("the page has no closer look")
	}
	return err
}

// takesAdvice calls each command of netdelta that a run suggests, up to where it would measure.
func (u *user) takesAdvice(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "result.json"))
	if err != nil {
		return err
	}
	var run struct {
		Advice  []struct{ How, Undo []string }
		Summary struct {
			Says []string
			Next string
		}
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return fmt.Errorf("read the advice of %s: %w", folder, err)
	}
	if len(run.Summary.Says) == 0 || !strings.Contains(run.Summary.Says[0], "across nodes") {
		return fmt.Errorf("the summary is %q", run.Summary.Says)
	}
	commands := []string{run.Summary.Next}
	for _, a := range run.Advice {
		commands = append(commands, append(a.How, a.Undo...)...)
	}
	called := 0
	for _, c := range commands {
		words := strings.Fields(strings.ReplaceAll(c, "DIR", folder))
		if len(words) < 2 || words[0] != "netdelta" || words[1] != "run" {
			continue
		}
		called++
		if _, err := u.call(append(words[1:], "--dry-run")...); err != nil {
			return fmt.Errorf("a command that was suggested: %w", err)
		}
	}
	if called == 0 {
		return fmt.Errorf("no command of netdelta is among %q", commands)
	}
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
