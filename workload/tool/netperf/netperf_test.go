package netperf_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
	"netdelta/workload/tool/netperf"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, name string) netperf.Report {
	t.Helper()
	if !netperf.Is(sample(t, name)) {
		t.Errorf("%s is not recognised", name)
	}
	all, err := netperf.Parse(sample(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestClassicTables(t *testing.T) {
	if got, want := parse(t, "tcp-rr.txt"), (netperf.Report{Test: netperf.TCPRR, Duration: 10 * time.Second, Request: 64, Response: 128, Rate: 27291.86}); got != want {
		t.Errorf("%+v", got)
	}
	if got, want := parse(t, "tcp-stream.txt"), (netperf.Report{
		Test: netperf.TCPStream, Duration: 10010 * time.Millisecond, Message: 65536, Throughput: 934.39 * unit.Mbit,
	}); got != want {
		t.Errorf("%+v", got)
	}
	if got, want := parse(t, "udp-stream.txt"), (netperf.Report{
		Test: netperf.UDPStream, Duration: 10 * time.Second, Message: 1024, Throughput: 403.2 * unit.Mbit, Sent: 492775, Received: 492201,
	}); got != want {
		t.Errorf("%+v", got)
	}
}

func TestOmni(t *testing.T) {
	all, err := netperf.Parse(sample(t, "omni.csv"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%d tests, %v", len(all), err)
	}
	want := netperf.Report{
		Test: netperf.TCPRR, Duration: 10 * time.Second, Request: 64, Response: 64, Rate: 27780.12, Congestion: "cubic",
		Min: 24e3, Mean: 35810, Max: 6655e3, P50: 34e3, P90: 42e3, P99: 71e3,
	}
	if all[0] != want || all[1].P90 != 43e3 || !all[0].Transactions() {
		t.Errorf("%+v\nwant\n%+v", all[0], want)
	}
	if got, want := parse(t, "omni.txt"), (netperf.Report{
		Test: netperf.TCPStream, Duration: 10 * time.Second, Message: 128 * unit.KiB, Throughput: 9412.35 * unit.Mbit, P50: 110e3, Retransmits: 17, Congestion: "cubic",
	}); got != want {
		t.Errorf("%+v", got)
	}
	twice, err := netperf.Parse(append(sample(t, "omni.txt"), sample(t, "tcp-rr.txt")...))
	if err != nil || len(twice) != 2 || twice[1].Test != netperf.TCPRR {
		t.Errorf("two tests in a file: %+v, %v", twice, err)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no result",
		string(sample(t, "refused.txt")): "1: \"establish control: are you sure",
		"THROUGHPUT=abc\n":               `1:12: "abc" is not a number`,
		"THROUGHPUT=1\nTHROUGHPUT_UNITS=furlongs\n": `2:18: "furlongs" is no unit`,
		"THROUGHPUT_UNITS=Trans/s\n":                "neither a rate",
		"Throughput,Throughput Units\n1,2,3\n":      "2: 3 values under 2 titles",
		"Recv   Send    Send\n1 2\n":                "2: 2 figures",
	} {
		if _, err := netperf.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	var place *tool.PlaceError
	broken := strings.Replace(string(sample(t, "omni.csv")), "27615.40", "fast", 1)
	if _, err := netperf.Parse([]byte(broken)); !errors.As(err, &place) || place.Line != 4 {
		t.Errorf("a broken line: %v", err)
	}
	if netperf.Is([]byte("a,b\n1,2\n")) || netperf.Is([]byte("A=1")) || netperf.Is(nil) {
		t.Error("other CSV is taken for netperf's")
	}
}

func TestArgs(t *testing.T) {
	at := netip.MustParseAddrPort("[fd00::2]:20001")
	got := strings.Join(netperf.ClientArgs(netperf.Test{
		Name: netperf.TCPRR, Server: at, Data: 20501, Duration: time.Second, Message: 64, Congestion: "cubic", NoDelay: true,
	}), " ")
	for _, want := range []string{"-H fd00::2,6 -p 20001 -t TCP_RR -l 1 -j -- -k ELAPSED_TIME,THROUGHPUT,", " -P ,20501 -r 64,64 -D -K cubic,cubic"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %q", got, want)
		}
	}
	if got := strings.Join(netperf.ServerArgs(netip.MustParseAddrPort("0.0.0.0:20001")), " "); got != "-D -p 20001 -L 0.0.0.0,4" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"tcp-rr.txt", "tcp-stream.txt", "udp-stream.txt", "omni.csv", "omni.txt", "refused.txt"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := netperf.Parse(text)
		if err != nil {
			return
		}
		for _, r := range all {
			if !(r.Rate > 0 || r.Throughput > 0) || r.Duration < 0 || r.P50 < 0 || r.Message < 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}
