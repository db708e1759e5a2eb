package sockperf_test

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netdelta/workload/tool"
	"netdelta/workload/tool/sockperf"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, name string) sockperf.Report {
	t.Helper()
	r, err := sockperf.Parse(sample(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPrinted(t *testing.T) {
	for _, name := range []string{"udp.txt", "tcp.txt", "udp-half.txt", "tcp-half.txt"} {
		r := parse(t, name)
		if want := strings.ToUpper(name[:3]); r.Protocol != want || r.Version != "3.7-no.git" || r.Rate != 0 {
			t.Errorf("%s: the test is %+v", name, r)
		}
		if r.Duration < 400*time.Millisecond || r.Duration > 600*time.Millisecond || r.Received < 1000 || r.Dropped != 0 {
			t.Errorf("%s: %d messages in %v", name, r.Received, r.Duration)
		}
		// One after another: the mean round trip is the time over their number.
		if each := float64(r.Duration) / float64(r.Received); r.Mean < each*0.9 || r.Mean > each*1.1 {
			t.Errorf("%s: the mean round trip is %.0f ns, a message took %.0f ns", name, r.Mean, each)
		}
		median, known := r.Percentile(50)
		if !known || !(r.Min < median && median < r.Max) || len(r.Percentiles) != 8 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestLog(t *testing.T) {
	for name, message := range map[string]float64{"log.csv": 64, "log-half.csv": 300} {
		r := parse(t, name)
		if float64(r.Message) != message || r.Protocol != "" || len(r.Messages) < 270 || r.Rate != 0 {
			t.Errorf("%s: the test is %+v", name, r)
			continue
		}
		first, second := r.Messages[0], r.Messages[1]
		if gap := (second.At - first.At) * 1e9; gap < first.RoundTrip || gap > first.RoundTrip+1e6 {
			t.Errorf("%s: a round trip of %.0f ns, and the next message %.0f ns later", name, first.RoundTrip, gap)
		}
	}
	if r := parse(t, "under-load.csv"); r.Rate != 1000 {
		t.Errorf("the rate is %v", r.Rate)
	}
	both, err := sockperf.Parse(append(sample(t, "udp.txt"), sample(t, "log.csv")...))
	if err != nil || both.Protocol != sockperf.UDP || both.Message != 64 || len(both.Percentiles) != 8 {
		t.Errorf("printed and logged: %+v, %v", both, err)
	}
}

func TestRefused(t *testing.T) {
	for name, want := range map[string]string{
		"refused.txt":    "Connection refused",
		"nobody.txt":     "measured nothing",
		"throughput.txt": "how fast it can send",
	} {
		if _, err := sockperf.Parse(sample(t, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	var place *tool.PlaceError
	text := strings.Replace(string(sample(t, "log.csv")), "\n5, ", "\n5; ", 1)
	if _, err := sockperf.Parse([]byte(text)); !errors.As(err, &place) || !strings.HasPrefix(strings.Split(text, "\n")[place.Line-1], "5; ") {
		t.Errorf("a broken line: %v", err)
	}
}

func TestArgs(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.1:20000")
	got := strings.Join(sockperf.ClientArgs(sockperf.Test{Server: at, TCP: true, Message: 64, Nagle: true, Duration: 1500 * time.Millisecond, Log: "x.csv"}), " ")
	want := "ping-pong --full-rtt --ip 10.0.0.1 --port 20000 --tcp --tcp-avoid-nodelay --time 2 --msg-size 64 --full-log x.csv"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := strings.Join(sockperf.ServerArgs(at, false, false), " "); got != "server --ip 10.0.0.1 --port 20000" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"udp.txt", "tcp-half.txt", "log.csv", "throughput.txt", "nobody.txt"} {
		f.Add(sample(f, name))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := sockperf.Parse(text)
		if err != nil {
			return
		}
		for _, v := range []float64{r.Mean, r.Min, r.Max} {
			if math.IsNaN(v) {
				t.Errorf("%+v", r)
			}
		}
		if r.Duration <= 0 || r.Received == 0 && len(r.Messages) == 0 {
			t.Errorf("%+v", r)
		}
	})
}
