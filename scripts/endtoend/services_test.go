package endtoend

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// short is the short form of a study with daemons: three builds, the fewest with which deltas have intervals. On a busy machine fewer may
// fit into its time.
type short struct {
	study, workload string
	flags           []string
	services        []string // what the names of daemons that served trials begin with
}

func shorts() []short {
	return []short{
		{
			"throughput", "tcp-stream", []string{
				"--networks", "host,routed,vxlan-routed", "--factor", "mtu=1500,9000", "--factor", "service=pod", "--factor", "from=pod,node",
				"--time-budget", "15s",
			},
			nil,
		},
		{
			"throughput", "http", []string{
				"--networks", "host,routed,vxlan-routed", "--factor", "mtu=1500", "--factor", "file=600,1MB", "--factor", "service=pod,iptables",
				"--factor", "from=node", "--time-budget", "30s",
			},
			[]string{"nginx"},
		},
		{"storage", "block", storageFlags("nbd", "randread", "4KiB,2MiB", "1", "45s"), []string{"nbd-server"}},
		{"storage", "block", storageFlags("ceph", "randread", "4KiB", "1", "60s"), []string{"ceph-mon", "ceph-osd"}},
		{
			"database", "oltp", []string{
				"--networks", "host,vxlan-routed", "--factor", "mix=read_write", "--factor", "link.rate=800Mbit/s", "--factor", "link.delay=0s",
				"--factor", "qos=guaranteed", "--time-budget", "70s",
			},
			[]string{"mariadbd"},
		},
	}
}

func storageFlags(store, operation, block, depth, budget string) []string {
	return []string{
		"--networks", "host,vxlan-routed", "--factor", "store=" + store, "--factor", "operation=" + operation, "--factor", "block=" + block, "--factor", "depth=" + depth,
		"--factor", "clients=1", "--factor", "mtu=9000", "--factor", "link.rate=1Gbit/s", "--factor", "link.nodes=none", "--time-budget", budget,
	}
}

// runsShort runs the short form of a study and holds what it wrote against what the study is about.
func (u *user) runsShort(of short) error {
	if skipped, err := u.skipped(of.study, of.study); skipped || err != nil {
		return err
	}
	folder := filepath.Join(u.folder, strings.Join(append([]string{of.study}, of.services...), "-"))
	out, err := u.call(append([]string{"run", of.study, "--workloads", of.workload, "--builds", "3", "--out", folder, "--json"}, of.flags...)...)
	if err != nil {
		return err
	}
	a, err := read(out)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(a.Deltas, func(d delta) bool { return d.Workload == of.workload && d.Ratio != nil }) {
		return fmt.Errorf("nothing of %s was held against the baseline", of.workload)
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
	failed, all, err := served(folder, of.services)
	if err != nil {
		return err
	}
	fmt.Printf("  %s, %s: %d deltas, %d of %d claims tested, %d of %d trials failed\n", of.study, of.workload, len(a.Deltas), tested, len(a.Claims), failed, all)
	return nil
}

// served holds the trials of a run against the daemons that must have served some of them, and counts those that failed, which
// are few on a machine that has other work.
func served(folder string, services []string) (failed, all int, err error) {
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
func (u *user) killsServices() error {
	if skipped, err := u.skipped("storage", "a killed run with services"); skipped || err != nil {
		return err
	}
	for _, name := range []string{"ceph-mon", "fio"} { // the first of its daemons, and what loads them
		arguments := append([]string{"run", "storage", "--workloads", "block", "--out", filepath.Join(u.folder, "killed-"+name)}, storageFlags("ceph", "randread", "4KiB", "1", "100s")...)
		if err := u.killed(name, arguments); err != nil {
			return err
		}
	}
	return nil
}

// lacking are the programs that a study's workloads need and this machine does not have.
func (u *user) lacking(study string) (string, error) {
	out, err := u.call("list", "studies", "--json")
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

// skipped says whether this machine lacks programs of a study, and notes what is left out for that, where the check of a commit gathers it.
func (u *user) skipped(study, what string) (bool, error) {
	lacks, err := u.lacking(study)
	if err != nil || lacks == "" {
		return false, err
	}
	line := fmt.Sprintf("skip: %s: needs %s, this machine lacks it", what, lacks)
	fmt.Println("  " + line)
	folder := os.Getenv("NETDELTA_SUMMARY")
	if folder == "" {
		return true, nil
	}
	f, err := os.OpenFile(filepath.Join(folder, "services.skipped"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return true, err
	}
	_, err = fmt.Fprintln(f, line)
	return true, errors.Join(err, f.Close())
}
