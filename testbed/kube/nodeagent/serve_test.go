package nodeagent

import (
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"netdelta/internal/leak"
	"netdelta/testbed/nsmonitor"
	"netdelta/testbed/rpc"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// said is what an agent answers to requests.
func said(t testing.TB, requests ...string) (all []answer, failed []string) {
	t.Helper()
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(there, there) }()
	conn := rpc.NewConn(here, true)
	for _, text := range requests {
		var r rpc.Request
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		value, err := rpc.Ask[answer](t.Context(), conn, r.Op, r.Args)
		all, failed = append(all, value), append(failed, "")
		if err != nil {
			failed[len(failed)-1] = err.Error()
		}
	}
	_ = conn.Close()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	return all, failed
}

// An agent without any rights describes and counts the devices of its namespace, and what it can't do it says.
func TestServe(t *testing.T) {
	all, failed := said(t,
		`{"op":"hello"}`, `{"op":"describe"}`, `{"op":"count"}`, `{"op":"begin"}`,
		`{"op":"end","args":{"watch":1,"to":["127.0.0.1"],"port":1}}`, `{"op":"end","args":{"watch":1}}`, `{"op":"drop","args":{"watch":7}}`,
		`{"op":"dance"}`,
	)
	if i := all[1].Interfaces; len(i) == 0 || i[0].Name != "lo" || i[0].Kind != "device" || i[0].MTU == 0 {
		t.Errorf("devices: %+v", i)
	}
	if _, is := all[2].Counters["lo"]; !is {
		t.Errorf("counters: %+v", all[2].Counters)
	}
	if a := all[4]; len(a.Routes) != 1 || a.Routes[0].Device != "lo" || a.Lacks != "" || len(a.Interfaces) == 0 {
		t.Errorf("the end of a watch: %+v", a)
	}
	for i, says := range map[int]string{5: "has ended", 7: `no operation "dance"`} {
		if e := failed[i]; !strings.Contains(e, says) {
			t.Errorf("answer %d: the error %q, want one with %q", i, e, says)
		}
	}
	for _, i := range []int{0, 1, 2, 3, 4, 6} {
		if e := failed[i]; e != "" {
			t.Errorf("answer %d: %s", i, e)
		}
	}
}

// What is not a request ends the agent with an error.
func TestServeRefusesNoise(t *testing.T) {
	if err := Serve(strings.NewReader("what?\n"), new(bytes.Buffer)); err == nil {
		t.Error("taken for a request")
	}
}

// Only packets between two of the addresses are kept.
func TestConcerns(t *testing.T) {
	bytesOf := func(texts ...string) [][]byte {
		var all [][]byte
		for _, text := range texts {
			all = append(all, netip.MustParseAddr(text).AsSlice())
		}
		return all
	}
	head := func(addresses ...string) []byte {
		return append([]byte("header"), bytes.Join(bytesOf(addresses...), nil)...)
	}
	wanted := bytesOf("10.244.1.5", "10.244.2.3", "172.18.0.2", "2001:db8::1")
	for _, c := range []struct {
		head []byte
		want bool
	}{
		{head("10.244.1.5", "10.244.2.3"), true},
		{head("172.18.0.2", "172.18.0.9", "10.244.1.5"), true},
		{head("172.18.0.2", "172.18.0.2"), true}, // to itself
		{head("172.18.0.2", "172.18.0.9"), false},
		{head("2001:db8::1", "10.244.1.5"), true},
		{head("2001:db8::2", "10.244.1.5"), false},
		{nil, false},
	} {
		if got := concerns(c.head, wanted); got != c.want {
			t.Errorf("%x: got %v, want %v", c.head, got, c.want)
		}
	}
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`{"op":"begin","args":{"addresses":["10.0.0.1"]}}`), []byte(`{"op":"end","args":{"watch":1,"to":["::1"],"port":80}}`))
	f.Add([]byte(`{"op":"describe"}`), []byte(`{"op":"drop","args":{"watch":-1}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		counters, err := nsmonitor.NewCounterReader()
		if err != nil {
			t.Fatal(err)
		}
		s := &server{counters: counters, watches: map[int]*watch{}}
		for _, line := range [][]byte{a, b} {
			var r rpc.Request
			if json.Unmarshal(line, &r) != nil {
				continue
			}
			got, err := rpc.Call(r, func(args request) (a answer, err error) { return a, s.answer(r, args, &a) })
			if err != nil {
				continue
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("%q: an answer that can't be sent: %v", line, err)
			}
		}
		for _, w := range s.watches {
			if err := w.stop(); err != nil {
				t.Error(err)
			}
		}
		if err := counters.Close(); err != nil {
			t.Error(err)
		}
	})
}
