package nsmonitor

import (
	"os"
	"strings"
	"testing"

	"netdelta/testbed"
)

func TestAddStack(t *testing.T) {
	const (
		snmp = "Ip: Forwarding DefaultTTL ReasmReqds ReasmOKs FragOKs FragFails FragCreates\n" +
			"Ip: 1 64 9 3 8 2 7\nIcmp: InMsgs\nIcmp: 5\n"
		snmp6 = "Ip6InReceives                   \t31\nIp6ReasmOKs                     \t10\nIp6FragOKs                      \t1\n" +
			"Ip6FragFails                    \t20\nIp6FragCreates                  \t30\nIcmp6InMsgs 4\n"
	)
	var s testbed.Stack
	for _, text := range []string{snmp, snmp6} {
		if err := addStack(&s, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if want := (testbed.Stack{FragmentsMade: 37, Reassembled: 13, FragmentationRefused: 22}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	for _, bad := range []string{
		"Ip: FragCreates\nIp: 1 2\n", "Ip: FragCreates\nIp: x\n", "Ip: FragCreates\n", "", strings.Replace(snmp6, "\t30", "\t-1", 1),
	} {
		if err := addStack(&s, []byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// This machine's own files are understood.
func TestAddStackOfThisKernel(t *testing.T) {
	for _, path := range []string{"/proc/self/net/snmp", "/proc/self/net/snmp6"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Log(err)
			continue
		}
		var s testbed.Stack
		if err := addStack(&s, text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(make([]byte, 16))
	// A name of one letter, and counters that are too short.
	f.Add(append(make([]byte, 16), 6, 0, 3, 0, 'a', 0, 0, 0, 8, 0, 23, 0, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, body []byte) {
		if d, ok := parseLink(body); ok && (d.Name == "" || len(d.Name) > len(body)) {
			t.Errorf("a device with the name %q", d.Name)
		}
	})
}
