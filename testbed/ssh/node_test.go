package ssh_test

import (
	"slices"
	"strings"
	"testing"

	"netdelta/testbed/ssh"
)

// TestParseNodes: servers are named as for ssh, and what is no name of a host never becomes an argument or a word of a shell.
func TestParseNodes(t *testing.T) {
	for text, want := range map[string]struct {
		nodes   []ssh.Node
		address string // of the first
	}{
		"ssh:a":                               {[]ssh.Node{{Host: "a"}}, "a"},
		"ssh:me@a":                            {[]ssh.Node{{Host: "me@a"}}, "a"},
		"ssh:me@a:2222,ssh:b":                 {[]ssh.Node{{Host: "me@a", Port: 2222}, {Host: "b"}}, "a"},
		"ssh:10.1.1.1:22":                     {[]ssh.Node{{Host: "10.1.1.1", Port: 22}}, "10.1.1.1"},
		"ssh:fd00::1":                         {[]ssh.Node{{Host: "fd00::1"}}, "fd00::1"},
		"ssh:me@fd00::9":                      {[]ssh.Node{{Host: "me@fd00::9"}}, "fd00::9"},
		"ssh:me@[fd00::1]:22,ssh:[fd00::2]":   {[]ssh.Node{{Host: "me@fd00::1", Port: 22}, {Host: "fd00::2"}}, "fd00::1"},
		"ssh:first.last@host-1.example.org:1": {[]ssh.Node{{Host: "first.last@host-1.example.org", Port: 1}}, "host-1.example.org"},
	} {
		got, err := ssh.ParseNodes(text)
		if err != nil || !slices.Equal(got, want.nodes) || got[0].Address() != want.address {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
		var named []string
		for _, n := range got {
			named = append(named, ssh.Prefix+n.String())
		}
		if again, err := ssh.ParseNodes(strings.Join(named, ",")); err != nil || !slices.Equal(again, want.nodes) {
			t.Errorf("%s reads as %+v, %v", named, again, err)
		}
	}
	for text, says := range map[string]string{
		"a": "does not begin with ssh:", "ssh:": "no name of a host", "ssh:me@": "no name of a host", "ssh:-oProxyCommand=x": "no name of a host", "ssh:a b": "no name of a host",
		"ssh:a;b": "no name of a host", "ssh:$(x)": "no name of a host", "ssh:[fd00::1": "brackets", "ssh:[fd00::1]22": "brackets", "ssh:a:0": "the port", "ssh:a:65536": "the port", "ssh:a,": "does not begin",
	} {
		if got, err := ssh.ParseNodes(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v; want that it says %q", text, got, err, says)
		}
	}
}
