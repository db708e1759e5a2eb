package iperf3_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
	"netdelta/workload/tool/iperf3"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, name string) iperf3.Report {
	t.Helper()
	r, err := iperf3.Parse(sample(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStreams(t *testing.T) {
	r := parse(t, "tcp.json")
	if r.Protocol != iperf3.TCP || r.Streams != 2 || r.Message != 128*unit.KiB || r.Version != "3.12" || r.Reverse || r.Rate != 0 || r.Congestion == "" {
		t.Errorf("the test is %+v", r)
	}
	if r.Duration < 1900*time.Millisecond || r.Duration > 2100*time.Millisecond {
		t.Errorf("it took %v", r.Duration)
	}
	if got := float64(r.Bytes) * 8 / r.Duration.Seconds(); got/float64(r.Throughput) < 0.99 || got/float64(r.Throughput) > 1.01 {
		t.Errorf("%d bytes in %v are not %v", r.Bytes, r.Duration, r.Throughput)
	}
	if len(r.Intervals) != 2 || r.Intervals[0].At > time.Millisecond || r.Intervals[1].Span < 900*time.Millisecond {
		t.Errorf("the intervals are %+v", r.Intervals) // without the one that is omitted
	}
	if r.RTT <= 0 || r.MinRTT <= 0 || r.MinRTT > r.RTT || r.MSS == 0 || r.CPU <= 0 || r.CPU > 2*r.Duration || r.Started.Year() < 2020 {
		t.Errorf("%+v", r)
	}
	if r := parse(t, "reverse.json"); !r.Reverse || r.Bytes == 0 || r.Message != 64*unit.KiB {
		t.Errorf("the other way: %+v", r)
	}
}

// The samples are of 40 Mbit/s sent into a queue that takes 30 Mbit/s, whole and with a first second omitted.
func TestDatagrams(t *testing.T) {
	for _, name := range []string{"udp.json", "udp-whole.json"} {
		r := parse(t, name)
		if r.Protocol != iperf3.UDP || r.Streams != 2 || r.Message != 1400 || r.Rate != 20*unit.Mbit {
			t.Errorf("%s: the test is %+v", name, r)
		}
		if share := float64(r.Lost) / float64(r.Datagrams); r.Datagrams < 7000 || share < 0.25 || share > 0.28 || r.Jitter <= 0 {
			t.Errorf("%s: %d of %d lost, jitter %v", name, r.Lost, r.Datagrams, r.Jitter)
		}
		if r.Bytes != (r.Datagrams-r.Lost)*1400 || r.Throughput > 30*unit.Mbit || r.Throughput < 28*unit.Mbit {
			t.Errorf("%s: %d bytes, %v", name, r.Bytes, r.Throughput)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, want := range map[string]string{
		"refused.json":     "Connection refused",
		"interrupted.json": "the client has terminated",
		"bidir.json":       "both directions",
	} {
		if _, err := iperf3.Parse(sample(t, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	text := sample(t, "tcp.json")
	var place *tool.PlaceError
	if _, err := iperf3.Parse(text[:len(text)/2]); !errors.As(err, &place) || place.Line < 20 {
		t.Errorf("half of a file: %v", err)
	}
}

func TestIs(t *testing.T) {
	for _, name := range []string{"tcp.json", "udp.json", "refused.json", "interrupted.json"} {
		if !iperf3.Is(sample(t, name)) {
			t.Errorf("%s is not recognised", name)
		}
	}
	for _, text := range []string{"", "{}", `{"fio version": "fio-3.33"}`, "iperf 3.12"} {
		if iperf3.Is([]byte(text)) {
			t.Errorf("%q is taken for iperf3's", text)
		}
	}
}

func TestArgs(t *testing.T) {
	got := iperf3.ClientArgs(iperf3.Test{
		Server: netip.MustParseAddrPort("[fd00::1]:20000"), UDP: true, Streams: 2, Message: 1400, Rate: 50 * unit.Mbit,
		Duration: 900 * time.Millisecond, Omit: time.Second,
	})
	want := strings.Fields("--client fd00::1 --port 20000 -6 --json --time 1 --omit 1 --parallel 2 --length 1400 --connect-timeout 3000 " +
		"--udp --bitrate 50000000 --udp-counters-64bit")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	if got := strings.Join(iperf3.ServerArgs(netip.MustParseAddrPort("0.0.0.0:20000")), " "); got != "--server --port 20000 -4" {
		t.Errorf("%s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"tcp.json", "udp.json", "bidir.json", "refused.json"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := iperf3.Parse(text)
		if err == nil && (r.Duration <= 0 || r.Bytes < 0 || !(r.Throughput >= 0) || r.Lost > r.Datagrams) {
			t.Errorf("%+v", r)
		}
	})
}
