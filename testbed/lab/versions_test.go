package lab_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

// A testbed says which program loaded its rules, and in which of its forms.
func TestVersions(t *testing.T) {
	for policy, want := range map[string]int{result.PolicyIPTables: 1, result.PolicyNFTables: 0} {
		tb := under(t, testbed.Spec{Network: "bridge", Conditions: result.Conditions{Policy: policy}.Plain()})
		versions, err := tb.Versions()
		if err != nil {
			t.Fatal(err)
		}
		if len(versions) != want {
			t.Errorf("policy %s: versions %v, want %d", policy, versions, want)
		}
		if v := versions["iptables-restore"]; want > 0 && !strings.Contains(v, "(nf_tables)") && !strings.Contains(v, "(legacy)") {
			t.Errorf("version %q does not say which form of iptables it is", v)
		}
	}
}

// Both forms of iptables guard pods and resolve services, survive a swap, and leave the machine's own lock alone.
func TestFormsOfIPTables(t *testing.T) {
	const lock = "/run/xtables.lock"
	for form, program := range map[string]string{"nf_tables": "/usr/sbin/xtables-nft-multi", "legacy": "/usr/sbin/xtables-legacy-multi"} {
		t.Run(form, func(t *testing.T) {
			_, err := os.Stat(program)
			require.Need(t, "the program "+program, err == nil)
			bin := t.TempDir()
			for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
				if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			before, beforeErr := os.Stat(lock)
			c := result.Conditions{Policy: result.PolicyIPTables, Service: result.ServiceIPTables}.Plain()
			tb := under(t, testbed.Spec{Network: "bridge", PodsOutlive: true, Conditions: c})
			versions, err := tb.Versions()
			if err != nil {
				t.Fatal(err)
			}
			if v := versions["iptables-restore"]; !strings.Contains(v, form) {
				t.Errorf("version %q", v)
			}
			client, server := testbedtest.StartPeer(t, tb.Pods()[0]), testbedtest.StartPeer(t, tb.Pods()[2])
			port, _ := server.Pod.Ports()
			if err := server.Serve("udp", port); err != nil {
				t.Fatal(err)
			}
			for _, next := range []string{"routed", "bridge"} {
				if _, err := client.Exchange("udp", tb.Endpoint(client.Pod, server.Pod, port), 100, 3); err != nil {
					t.Fatal(err)
				}
				if err := tb.Swap(t.Context(), next); err != nil {
					t.Fatal(err)
				}
			}
			after, afterErr := os.Stat(lock)
			if errors.Is(beforeErr, fs.ErrNotExist) != errors.Is(afterErr, fs.ErrNotExist) || beforeErr == nil && !os.SameFile(before, after) {
				t.Errorf("%s: %v, %v before", lock, afterErr, beforeErr)
			}
		})
	}
}

// An iptables that the kernel gives no table to is unsupported, with the kernel's options; any other failure is told as it is.
func TestIPTablesThatFails(t *testing.T) {
	require.Namespaces(t)
	for _, f := range []struct {
		says        string
		unsupported bool
		want        string
	}{
		{"iptables-restore: unable to initialize table 'filter'", true, "CONFIG_IP_NF_IPTABLES"},
		{"Warning: Extension conntrack revision 0 not supported, missing kernel module?", true, "CONFIG_NETFILTER_XT_MATCH_CONNTRACK"},
		{"iptables-restore: line 2 failed", false, "line 2 failed"},
	} {
		bin := t.TempDir()
		script := "#!/bin/sh\necho \"" + f.says + "\" >&2\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bin, "iptables-restore"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		err := lab.NewDriver(network.Catalogue()).Supports(t.Context(), testbed.Spec{Network: "bridge", Conditions: result.Conditions{Policy: result.PolicyIPTables}.Plain()})
		if err == nil || errors.Is(err, testbed.ErrUnsupported) != f.unsupported || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%q: got %v", f.says, err)
		}
	}
}
