package network_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/network"
	"netdelta/result"
)

// Each mistake in a list of plugins is found where it is.
func TestBadLists(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "l:1:1: no JSON"},
		{"{\n  \"name\": }", "l:2:11: no JSON"},
		{"{\n \"mtu\": {{.MTU}},\n \"x\" 1}", "l:3:6: no JSON"},
		{"{\"a\": {{.MTU}}, \"b\": {{.MTU}}, x}", "l:1:32: no JSON"},
		{"[]", "l:1:1: a list of CNI plugins is a JSON object"},
		{`{"type": "bridge"}`, `l:1:1: the key "cniVersion" is missing`},
		{`{"cniVersion": "1.0.0", "plugins": [{"type": "a"}]}`, `l:1:1: the key "name" is missing`},
		{`{"cniVersion": "1.0.0", "name": "n"}`, `l:1:1: the key "plugins" is missing; a single plugin`},
		{"{\"cniVersion\":\n \"0.2.0\"}", `l:2:2: cniVersion "0.2.0" is none`},
		{`{"cniVersion": 1}`, "l:1:16: cniVersion must be a text, not 1"},
		{`{"name": "ä/b"}`, `l:1:10: the network name "ä/b" is none`},
		{`{"plugins": {}}`, "l:1:13: plugins must be a list, not {}"},
		{`{"plugins": []}`, "l:1:13: plugins is an empty list"},
		{"{\"plugins\": [\n  {\"type\": \"a\"},\n  {}]}", `l:3:3: a plugin of the type ""`},
		{"{\"plugins\": [\n  {\"type\": \"../a\"}]}", `l:2:3: a plugin of the type "../a"`},
		{"{\"plugins\": [\n  7]}", "l:2:3: a plugin must not be a number"},
		{"{\"plugins\": [{\"type\":\n  7}]}", "l:2:3: type must not be a number"},
		{"{\"ä\": \"{{.PodCDIR}}\"}", `l:1:8: unknown placeholder "{{.PodCDIR}}"; did you mean {{.PodCIDR}}?`},
	} {
		_, err := network.CNI("l", []byte(c.text))
		var bad *network.ListError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// What is no list at all says so.
func TestUnreadableLists(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cni:": "is no file's name", "cni:a\x1b[2J": "is no file's name", "cni:a,b": "is no file's name", "cni:<b>": "is no file's name",
		"cni:" + dir: "it is a folder", "cni:" + large: "it has 2MiB, and such a file has at most 1MiB", "cni:" + dir + "/none": "no such file",
	} {
		if _, err := network.Find(network.Catalogue(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %s", name, err, want)
		}
	}
}

// The lists in docs/cni are good, and each node gets its own addresses.
func TestLists(t *testing.T) {
	files, err := filepath.Glob("../docs/cni/*.conflist")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d lists: %v", len(files), err)
	}
	for _, file := range files {
		for family, want := range map[result.Family][]string{
			result.IPv4: {"198.19.0.", "198.19.1."}, result.IPv6: {"2001:2:0:100:", "2001:2:0:101:"},
		} {
			n, err := network.Find(network.Catalogue(), network.CNIPrefix+file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := n.Plan(topology(t, network.Layout{Family: family, MTU: 1700}))
			if err != nil {
				t.Fatal(err)
			}
			if p.Network != n.Name || !p.Observed {
				t.Errorf("%s: a plan of %q that is observed: %v", file, p.Network, p.Observed)
			}
			var lists []string
			for _, op := range p.Ops {
				a, is := op.(network.Attach)
				if !is {
					continue
				}
				if strings.Contains(a.List, "{{") || !strings.Contains(a.List, "1700") {
					t.Errorf("%s: not filled in:\n%s", file, a.List)
				}
				lists = append(lists, a.List)
			}
			if len(lists) != 4 || lists[0] != lists[1] || lists[0] == lists[2] {
				t.Fatalf("%s: %d lists, want equal lists on a node: %v", file, len(lists), lists)
			}
			for node, prefix := range want {
				if !strings.Contains(lists[2*node], prefix) {
					t.Errorf("%s: node %d has no address like %s:\n%s", file, node, prefix, lists[2*node])
				}
			}
		}
	}
}

// FuzzLists: no text makes the reader fail otherwise than with a place in it.
func FuzzLists(f *testing.F) {
	for _, file := range []string{"bridge", "macvlan", "bridge-portmap-bandwidth"} {
		text, err := os.ReadFile("../docs/cni/" + file + ".conflist")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"plugins": [{"ipam": {"type": 7}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := network.CNI("l", text)
		var bad *network.ListError
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("%v is no *ListError", err)
		}
		if bad != nil && (bad.Line < 1 || bad.Column < 1 || bad.Line > 1+strings.Count(string(text), "\n")) {
			t.Fatalf("%v is not in the text", bad)
		}
		if err == nil && n.Build == nil {
			t.Fatal("a network that can't be built")
		}
	})
}
