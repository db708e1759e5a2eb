package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/result"
)

// runFlags are the flags of run after a call.
func runFlags(t *testing.T, args ...string) (*runOptions, *pflag.FlagSet) {
	t.Helper()
	cmd, o := &cobra.Command{}, &runOptions{}
	o.addFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return o, cmd.Flags()
}

// Every flag of run is one that a resumed run finds in the study or in the record, or one of this call alone.
func TestEachFlagOutlivesACallOrNot(t *testing.T) {
	study := []string{
		"testbed", "target", storageFlag, "networks", "baseline", "workloads", "placement", "time-budget", "burst", "rounds", "blocks", "seed", "mtu", "family",
		"factor", "fail-if", "exact",
	}
	call := []string{"out", "resume", trustFlag, "wait", "metrics-listen", "dry-run", "format", "json", "verbose", "quiet"}
	_, flags := runFlags(t)
	var all []string
	flags.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	known := slices.Sorted(slices.Values(slices.Concat(study, call, optionNames())))
	if diff := cmp.Diff(known, slices.Sorted(slices.Values(all))); diff != "" {
		t.Errorf("unsorted flags of run (-known +have):\n%s", diff)
	}
}

// What a run was called with is there again when it is resumed, unless this call says otherwise.
func TestResumedRunTakesOptionsOver(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		first, second []string
		kept          map[string]string // after the first call
		taken         []string
		also          string // the second call fails with these words
	}{
		"nothing": {kept: map[string]string{}},
		"servers": {
			first: []string{"--testbed", "ssh", "--nodes", "ssh:root@a,ssh:root@b:22", "--nic", "macvlan:eth1", "--sudo"},
			kept:  map[string]string{"nodes": "ssh:root@a,ssh:root@b:22", "nic": "macvlan:eth1", "sudo": "true"},
			taken: []string{"nic", "nodes", "sudo"},
		},
		"what-if": {
			first: []string{"--what-if", "--base-image", "busybox", "--kubeconfig", "conf", "--namespace", "n", "--node-agent"},
			kept:  map[string]string{"what-if": "true", "base-image": "busybox", "kubeconfig": filepath.Join(here, "conf"), "namespace": "n", "node-agent": "true"},
			taken: []string{"base-image", "kubeconfig", "namespace", "node-agent", "what-if"},
		},
		"another image, other nodes": {
			first: []string{"--base-image", "busybox", "--zones", "a,b", "--qos", "guaranteed"}, second: []string{"--image", "mine", "--nodes", "w1,w2"},
			kept: map[string]string{"base-image": "busybox", "zones": "a,b", "qos": "guaranteed"}, taken: []string{"qos"},
		},
		"engine": {
			first: []string{"--docker", "bin/podman"}, kept: map[string]string{"docker": filepath.Join(here, "bin/podman")}, taken: []string{"docker"},
		},
		"a number of builds": {first: []string{"--builds", "9", "--flame"}, kept: map[string]string{"builds": "9", "flame": "true"}, taken: []string{"builds", "flame"}},
		"time in place of builds": {
			first: []string{"--builds", "9"}, second: []string{"--time-budget", "1m"}, kept: map[string]string{"builds": "9"},
		},
		"a password in a file": {
			first: []string{"--target-password-file", "secret"}, kept: map[string]string{passwordFlag: filepath.Join(here, "secret")}, taken: []string{passwordFlag},
		},
		"a password typed": {
			first: []string{"--target-password-file", "-"}, kept: map[string]string{passwordFlag: ""}, also: "give it again, by --target-password-file FILE or $NETDELTA_TARGET_PASSWORD",
		},
		"typed again": {
			first: []string{"--target-password-file", "-"}, second: []string{"--target-password-file", "-"}, kept: map[string]string{passwordFlag: ""},
		},
	} {
		first, flags := runFlags(t, c.first...)
		first.call.keep(flags)
		if diff := cmp.Diff(c.kept, first.call.values); diff != "" {
			t.Errorf("%s: kept (-want +have):\n%s", name, diff)
		}
		dir := recorded(t, first.call.values)
		second, flags := runFlags(t, append(c.second, "--resume", dir)...)
		err := second.call.recall(flags, dir, func(string) string { return "" })
		if (err != nil) != (c.also != "") || err != nil && !strings.Contains(err.Error(), c.also) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.taken, second.call.taken); diff != "" {
			t.Errorf("%s: taken over (-want +have):\n%s", name, diff)
		}
		second.call.keep(flags)
		for _, option := range c.taken {
			if second.call.values[option] != c.kept[option] {
				t.Errorf("%s: --%s is %q", name, option, second.call.values[option])
			}
		}
	}
}

// A record can't give flags that it does not keep: a folder of somebody else's would trust itself.
func TestRecordGivesNoOtherFlags(t *testing.T) {
	dir := recorded(t, map[string]string{"trust": "true"})
	o, flags := runFlags(t)
	if err := o.call.recall(flags, dir, os.Getenv); err == nil || !isUsage(err) || o.trust {
		t.Errorf("%v, trusts: %v", err, o.trust)
	}
}

// The record of the run that is resumed is read once, and asked for all that it says.
func TestRecordIsReadOnce(t *testing.T) {
	dir := recorded(t, map[string]string{"flame": "true"})
	o, flags := runFlags(t, "--resume", dir)
	if err := o.call.recall(flags, dir, os.Getenv); err != nil || !slices.Equal(o.call.taken, []string{"flame"}) {
		t.Fatalf("%v, taken over: %q", err, o.call.taken)
	}
	if err := os.Remove(filepath.Join(dir, result.ResultFile)); err != nil {
		t.Fatal(err)
	}
	o.call.earlier.Run.Exact, o.call.earlier.Run.Testbed = &result.Exact{}, result.Imported
	if exact, err := o.counts(); !exact || err != nil {
		t.Errorf("the run counted instructions: %v, %v", exact, err)
	}
	if err := resumable(o.call.run(), dir); !isUsage(err) {
		t.Errorf("an imported run is resumed: %v", err)
	}
	again, flags := runFlags(t, "--resume", dir)
	if err := again.call.recall(flags, dir, os.Getenv); err != nil {
		t.Errorf("a run that was killed before it wrote a record: %v", err)
	}
	if exact, err := again.counts(); exact || err != nil {
		t.Errorf("without a record, it counted instructions: %v, %v", exact, err)
	}
}

// recorded is a run folder whose run was called with options.
func recorded(t *testing.T, options map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	folder, err := result.Create(dir, []byte("study: s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.WriteResult(result.Run{Schema: result.Schema, Options: options}); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
