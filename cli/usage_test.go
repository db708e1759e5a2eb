package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// A call whose form is wrong is bad usage, which names what is wrong with it and what was probably meant. Nothing is carried out.
func TestCallsRefused(t *testing.T) {
	for call, words := range map[string][]string{
		"run --netwroks host":     {"--netwroks", "--networks"},
		"run --foo":               {"--foo"},
		"run --time-budget 40sec": {"--time-budget 40sec", "40s"},
		"run --time-budget 40":    {"--time-budget 40", "40s"},
		"run --time-budget soon":  {"--time-budget soon"},
		"run --seed -1":           {"--seed -1", "0 or more"},
		"run --json=maybe":        {"--json", "no value"},
		"run --builds x":          {"--builds x", "whole number"},
		"run one two":             {"one two", "netdelta run [STUDY|FILE]"},
		"show one two":            {"one two", "netdelta show"},
		"report one two":          {"one two", "netdelta report"},
		"compare":                 {"netdelta compare OLD NEW"},
		"compare a":               {"netdelta compare OLD NEW"},
		"list nothing":            {"nothing", "netdelta list [networks"},
		"list netwroks":           {"netwroks", "networks?"},
		"doctor extra":            {"extra"},
		"cleanup extra":           {"extra"},
		"image extra":             {"extra"},
		"man":                     {"netdelta man DIR"},
		"import":                  {"netdelta import"},
		"lab up":                  {"netdelta lab up"},
	} {
		env := &environment{in: strings.NewReader(""), out: io.Discard, err: io.Discard, getenv: os.Getenv, workloads: catalogue.Workloads(), lab: lab.NewDriver(network.Catalogue())}
		cmd, rest, err := newRoot(env).Find(strings.Fields(call))
		if err != nil {
			t.Errorf("%s: there is no such verb: %v", call, err)
			continue
		}
		if err = cmd.ParseFlags(rest); err != nil {
			err = cmd.FlagErrorFunc()(cmd, err)
		} else {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err == nil || !isUsage(err) {
			t.Errorf("%s: %v, want bad usage", call, err)
			continue
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: it does not say %q: %v", call, w, err)
			}
		}
	}
}

// What is served has no lock of its own: only this machine may reach it.
func TestAddressesRefused(t *testing.T) {
	for address, words := range map[string]string{
		"0.0.0.0:9469": "127.0.0.1:9469", ":9469": "127.0.0.1:9469", "[2001:db8::1]:9469": "127.0.0.1:9469", "9469": `"9469"`, "127.0.0.1:99999": `"127.0.0.1:99999"`,
	} {
		if err := checkListen("--listen", address); err == nil || !isUsage(err) || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), "--listen") {
			t.Errorf("%s: %v, want bad usage that says %s", address, err, words)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:80", "localhost:9469"} {
		if err := checkListen("--listen", address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}
