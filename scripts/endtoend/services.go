package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// short is the short form of a study with daemons: the least that has intervals.
type short struct {
	study     string
	flags     []string
	workloads []string // each has a delta with an interval
	services  []string // what the names of daemons that served trials begin with
}

func shorts() []short {
	return []short{
		{
			"throughput", []string{
				"--networks", "host,routed,vxlan-routed", "--factor", "mtu=1500,9000", "--factor", "file=600,1MB", "--factor", "service=pod",
				"--factor", "from=pod,node", "--time-budget", "60s",
			},
			[]string{"tcp-stream", "http"},
			[]string{"nginx"},
		},
		{
			"storage", []string{
				"--networks", "host,vxlan", "--workloads", "block", "--factor", "mtu=1500", "--factor", "block=4KiB", "--factor", "operation=randread",
				"--factor", "depth=1", "--factor", "clients=1", "--factor", "link.rate=1Gbit/s", "--factor", "store=nbd,ceph", "--time-budget", "2m",
			},
			[]string{"block"},
			[]string{"nbd-server", "ceph-mon", "ceph-osd"},
		},
		{
			"database", []string{
				"--networks", "host,vxlan-routed", "--workloads", "oltp,tcp-rr", "--factor", "mix=read_write", "--factor", "link.rate=20Mbit/s,200Mbit/s",
				"--factor", "link.delay=0s", "--time-budget", "2m",
			},
			[]string{"oltp", "tcp-rr"},
			[]string{"mariadb"},
		},
	}
}

// runsShort runs the short form of a study and holds what it wrote against what the study is about.
func (s *stage) runsShort(of short) error {
	if lacks, err := s.lacking(of.study); err != nil || lacks != "" {
		if err == nil {
			err = s.skip(of.study, lacks)
		}
		return err
	}
	folder := filepath.Join(s.folder, of.study)
	out, err := s.call(append([]string{"run", of.study, "--out", folder, "--json"}, of.flags...)...)
	if err != nil {
		return err
	}
	a, err := read(out)
	if err != nil {
		return err
	}
	for _, w := range of.workloads {
		if !slices.ContainsFunc(a.Deltas, func(d delta) bool { return d.Workload == w && d.interval() }) {
			return fmt.Errorf("no delta of %s has an interval", w)
		}
	}
	tested := 0
	for _, c := range a.Claims {
		if c.Verdict != "not-tested" {
			tested++
		}
	}
	if tested == 0 {
		return fmt.Errorf("none of %d claims was tested", len(a.Claims))
	}
	failed, all, err := s.served(folder, of.services)
	if err != nil {
		return err
	}
	fmt.Printf("  %s: %d deltas, %d of %d claims tested, %d of %d trials failed\n", of.study, len(a.Deltas), tested, len(a.Claims), failed, all)
	return nil
}

// served holds the trials of a run against the daemons that must have served some of them, and counts those that failed, which
// are few on a machine that has other work.
func (s *stage) served(folder string, services []string) (failed, all int, err error) {
	lines, err := finished(folder)
	if err != nil {
		return 0, 0, err
	}
	seen := map[string]bool{}
	why := ""
	for _, line := range lines {
		var t struct {
			Failed   string `json:"failed"`
			Services []struct {
				Name   string `json:"name"`
				Memory int64  `json:"memory"`
			} `json:"services"`
		}
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return 0, 0, fmt.Errorf("a line of the journal: %w", err)
		}
		if t.Failed != "" {
			failed, why = failed+1, t.Failed
		}
		for _, served := range t.Services {
			for _, name := range services {
				seen[name] = seen[name] || strings.HasPrefix(served.Name, name) && served.Memory > 0
			}
		}
	}
	for _, name := range services {
		if !seen[name] {
			return failed, len(lines), fmt.Errorf("no trial names a service %s with its memory", name)
		}
	}
	const fewest = 10 // one in so many
	if failed*fewest > len(lines) {
		return failed, len(lines), fmt.Errorf("%d of %d trials failed, the last: %s", failed, len(lines), why)
	}
	return failed, len(lines), nil
}

// killsServices kills a run while its cluster starts and while it serves: no daemon may be left, nor what they had.
func (s *stage) killsServices() error {
	if lacks, err := s.lacking("storage"); err != nil || lacks != "" {
		if err == nil {
			err = s.skip("a killed run with services", lacks)
		}
		return err
	}
	for _, after := range []time.Duration{4 * time.Second, 40 * time.Second} {
		cmd := s.command(nil, nil, append([]string{"run", "storage", "--out", filepath.Join(s.folder, "killed-"+after.String())}, shorts()[1].flags...)...)
		if err := cmd.Start(); err != nil {
			return err
		}
		time.Sleep(after)
		if err := cmd.Process.Kill(); err != nil {
			return fmt.Errorf("it ended by itself within %s: %w", after, err)
		}
		_ = cmd.Wait() // it was killed, and says so
		if _, err := s.call("cleanup"); err != nil {
			return err
		}
	}
	return nil
}

// lacking are the programs that a study's workloads need and this machine does not have.
func (s *stage) lacking(study string) (string, error) {
	out, err := s.call("list", "studies", "--json")
	if err != nil {
		return "", err
	}
	var all struct {
		Studies []struct {
			Name  string `json:"name"`
			Lacks string `json:"lacks"`
		} `json:"studies"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return "", fmt.Errorf("the list of studies: %w", err)
	}
	for _, of := range all.Studies {
		if of.Name == study {
			return of.Lacks, nil
		}
	}
	return "", fmt.Errorf("there is no study %s", study)
}

// skip notes what was left out, where the check of a commit gathers it.
func (s *stage) skip(what, lacks string) error {
	line := fmt.Sprintf("skip: %s: needs %s, this machine lacks it", what, lacks)
	fmt.Println("  " + line)
	folder := os.Getenv("NETDELTA_SKIPS")
	if folder == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(folder, "services"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}
