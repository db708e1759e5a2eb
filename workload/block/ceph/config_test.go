package ceph

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/workload"
)

// addresses are the addresses of a cluster's pods, with the prefix of the second version of IP that it may speak.
func addresses(prefix string) []netip.Addr {
	var all []netip.Addr
	for _, last := range []string{"10", "11", "12"} {
		all = append(all, netip.MustParseAddr(prefix+last))
	}
	return all
}

// Each pod's configuration names the same monitor and the same cluster, its own address and the version of IP.
func TestConfig(t *testing.T) {
	for _, c := range []struct {
		peers           []netip.Addr
		pod             int
		contains, lacks []string
	}{
		{addresses("198.18.0."), 1, []string{
			"\nmon host = [v2:198.18.0.10:3300]\n", "\npublic addr = 198.18.0.11\n", "\nms bind ipv4 = true\n", "\nms bind ipv6 = false\n",
			"\nosd data = /run/ceph/osd\n", "\ncrush location = root=default host=pod1\n", "\nauth client required = none\n", "\nrbd cache = false\n",
		}, nil},
		{addresses("2001:2::"), 2, []string{
			"\nmon host = [v2:[2001:2::10]:3300]\n", "\npublic addr = 2001:2::12\n", "\nms bind ipv4 = false\n", "\nms bind ipv6 = true\n",
		}, nil},
		{addresses("198.18.0.")[:2], 0, []string{"\nmon host = [v2:198.18.0.10:3299]\n", "\nosd pool default size = 2\n"}, nil},
		{addresses("198.18.0."), -1, []string{"\nmon host = [v2:198.18.0.10:3300]\n"}, []string{"osd data", "mon data", "public addr"}},
	} {
		text := string(config(inRun, c.peers, c.pod))
		for _, want := range c.contains {
			if !strings.Contains(text, want) {
				t.Errorf("the configuration of pod %d lacks %q:\n%s", c.pod, want, text)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(text, not) {
				t.Errorf("the configuration of pod %d has %q", c.pod, not)
			}
		}
		if !strings.Contains(text, "\nfsid = "+fsid+"\n") {
			t.Errorf("the configuration of pod %d is of no cluster", c.pod)
		}
	}
}

// All that an OSD has to keep fits into what it takes for a disk, and that into its home, with room to spare.
func TestSizes(t *testing.T) {
	if ImageSize > deviceSize*6/10 {
		t.Errorf("an image of %v fills a disk of %v", ImageSize, deviceSize)
	}
	if deviceSize+64<<20 > homeSize {
		t.Errorf("a disk of %v and a monitor's store do not fit into a home of %v", deviceSize, homeSize)
	}
}

func TestUUIDsDiffer(t *testing.T) {
	seen := map[string]bool{fsid: true}
	for id := range OSDs {
		u := osdUUID(id)
		if len(u) != len(fsid) || seen[u] {
			t.Errorf("OSD %d has the number %s", id, u)
		}
		seen[u] = true
	}
}

func TestServeRefuses(t *testing.T) {
	for _, c := range []struct {
		at   workload.Member
		want string
	}{
		{workload.Member{Pod: 0}, "start pod 0 of a Ceph cluster: it has no pods"},
		{workload.Member{Pod: 3, Peers: addresses("198.18.0.")}, "start pod 3 of a Ceph cluster: there is none: it has pods 0 to 2"},
		{workload.Member{Pod: -1, Peers: addresses("198.18.0.")}, "start pod -1 of a Ceph cluster: there is none: it has pods 0 to 2"},
	} {
		if _, err := Serve(t.Context(), c.at); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.at, err, c.want)
		}
	}
}

func TestVersion(t *testing.T) {
	for said, want := range map[string]string{
		"ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)\n": "16.2.15",
		"ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)":       "18.2.7",
		"ceph version 12.2.13": "version 12.2.13 of Ceph is too old: install 14 or newer",
		"usage: osd":           `ceph-osd says that its version is "usage: osd", which is none; is it another program?`,
	} {
		got, err := version(said)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// inRun says where the files of a home are, where it is seen at /run.
func inRun(name ...string) string { return filepath.Join("/run", filepath.Join(name...)) }
