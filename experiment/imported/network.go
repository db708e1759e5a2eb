package imported

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"netdelta/internal/gather"
	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
	"netdelta/workload/tool/iperf3"
	"netdelta/workload/tool/netperf"
	"netdelta/workload/tool/sockperf"
)

// The workloads that files are of.
const (
	tcpRR     = "tcp-rr"
	udpRR     = "udp-rr"
	tcpCRR    = "tcp-crr"
	tcpStream = "tcp-stream"
	udpStream = "udp-stream"
)

// trial makes one burst of a whole test: bursts of different files were not measured together, and can't be paired one by one.
func trial(length time.Duration) result.Trial {
	ns := length.Nanoseconds()
	return result.Trial{Bursts: result.Bursts{Round: []int{0}, Start: []int64{0}, Duration: []int64{ns}, Span: []int64{ns}}}
}

// histogram gives a trial its distribution, from a function that tells it all latencies in nanoseconds.
func histogram(t *result.Trial, each func(record func(ns, count int64))) error {
	h := latency.NewHistogram()
	each(h.Record)
	var err error
	t.Histogram, err = h.Encode()
	return err
}

// latencies are columns of one burst; what is 0 was not said.
type latencies struct{ min, p50, p90, p99, mean, max float64 }

// set gives the burst its columns of latencies.
func (l latencies) set(b *result.Bursts) {
	for _, c := range []struct {
		column *[]float64
		value  float64
	}{{&b.Min, l.min}, {&b.P50, l.p50}, {&b.P90, l.p90}, {&b.P99, l.p99}, {&b.Mean, l.mean}, {&b.Max, l.max}} {
		if c.value > 0 && !math.IsInf(c.value, 0) {
			*c.column = []float64{c.value}
		}
	}
}

// readIperf3 reads one test of iperf3. Its intervals are the series.
func readIperf3(r iperf3.Report, _ string) ([]measured, error) {
	m := measured{
		tool: iperf3.Program, version: r.Version, workload: tcpStream, started: r.Started,
		params: result.Params{
			Message: r.Message, Connections: r.Streams, Rate: r.Rate * unit.BitsPerSecond(r.Streams), CongestionControl: r.Congestion, Engine: iperf3.Program,
		},
		trial: trial(r.Duration),
	}
	t := &m.trial
	t.Bursts.Throughput = []float64{float64(r.Throughput)}
	t.Bytes, t.Transactions = r.Bytes, r.Bytes/int64(r.Message)
	t.Bursts.Transactions = []int64{t.Transactions}
	for _, i := range r.Intervals {
		t.Series = append(t.Series, result.Second{At: i.At.Seconds(), Span: i.Span.Seconds(), Bytes: i.Bytes})
	}
	if r.Reverse {
		m.note = "iperf3 ran some tests in reverse (-R): the server sent"
	}
	if r.Protocol == iperf3.UDP {
		m.workload = udpStream
		t.Sent, t.Lost, t.Reordered = r.Datagrams, r.Lost, r.Reordered
		t.Bursts.Lost = []int64{r.Lost}
		return []measured{m}, nil
	}
	t.TCP = &result.TCPInfo{Retransmits: r.Retransmits, RTT: r.RTT, MinRTT: r.MinRTT, MSS: r.MSS, CongestionControl: r.Congestion}
	return []measured{m}, nil
}

// readSockperf reads one test of sockperf.
func readSockperf(r sockperf.Report, workload string) (_ []measured, err error) {
	m := measured{
		tool: sockperf.Program, version: r.Version, params: result.Params{Message: r.Message, RequestRate: r.Rate, Engine: sockperf.Program},
		trial: trial(r.Duration),
	}
	switch {
	case r.Protocol == sockperf.TCP:
		m.workload = tcpRR
	case r.Protocol == sockperf.UDP:
		m.workload = udpRR
	case workload == tcpRR || workload == udpRR:
		m.workload = workload
	default:
		return nil, errors.New("its log does not say whether it is of TCP or of UDP; say --workload tcp-rr or udp-rr, or put what sockperf printed into the same file")
	}
	t := &m.trial
	t.Transactions, t.Lost, t.Sent = r.Received, r.Dropped, r.Sent
	t.Bytes = 2 * r.Received * int64(r.Message)
	t.Bursts.Transactions, t.Bursts.Lost = []int64{r.Received}, []int64{r.Dropped}
	l := latencies{min: r.Min, mean: r.Mean, max: r.Max}
	l.p50, _ = r.Percentile(50)
	l.p90, _ = r.Percentile(90)
	l.p99, _ = r.Percentile(99)
	if len(r.Messages) > 0 {
		times := gather.Each(r.Messages, func(message sockperf.Message) float64 { return message.RoundTrip })
		slices.Sort(times)
		l.p50, l.p90, l.p99 = stats.Quantile(times, 0.5), stats.Quantile(times, 0.9), stats.Quantile(times, 0.99)
		err = histogram(t, func(record func(ns, count int64)) {
			for _, v := range times {
				record(int64(v), 1)
			}
		})
	}
	l.set(&t.Bursts)
	return []measured{m}, err
}

// readNetperf reads the tests of netperf that a file holds.
func readNetperf(reports []netperf.Report, workload string) ([]measured, error) {
	known := map[string]string{
		netperf.TCPRR: tcpRR, netperf.UDPRR: udpRR, netperf.TCPCRR: tcpCRR, netperf.TCPStream: tcpStream, netperf.UDPStream: udpStream,
	}
	var all []measured
	for _, r := range reports {
		m := measured{tool: netperf.Program, workload: known[r.Test], params: result.Params{Engine: netperf.Program, CongestionControl: r.Congestion}}
		m.workload = cmp.Or(m.workload, workload)
		if streams := m.workload == tcpStream || m.workload == udpStream; m.workload == "" || streams == r.Transactions() {
			return nil, fmt.Errorf("it does not say which test it is of (no banner, or another test than --workload says); say --workload, one of %s, %s, %s, %s, %s",
				tcpRR, udpRR, tcpCRR, tcpStream, udpStream)
		}
		m.fill(r)
		all = append(all, m)
	}
	return all, nil
}

// fill takes the figures of a test of netperf.
func (m *measured) fill(r netperf.Report) {
	m.trial = trial(max(r.Duration, 1)) // a table of chosen columns may lack it
	t, seconds := &m.trial, r.Duration.Seconds()
	if r.Retransmits > 0 {
		t.TCP = &result.TCPInfo{Retransmits: r.Retransmits, CongestionControl: r.Congestion}
	}
	if !r.Transactions() {
		m.params.Message = r.Message
		t.Bursts.Throughput = []float64{float64(r.Throughput)}
		t.Bytes = int64(float64(r.Throughput) / 8 * seconds)
		t.Sent = r.Sent
		if r.Sent > 0 {
			t.Lost = max(r.Sent-r.Received, 0)
			t.Bursts.Lost = []int64{t.Lost}
		}
		return
	}
	m.params.Message = r.Request
	if r.Response != r.Request {
		m.note = fmt.Sprintf("netperf had requests of %d bytes and responses of %d: the table names the requests", int64(r.Request), int64(r.Response))
	}
	t.Transactions = int64(r.Rate * seconds)
	t.Bursts.Transactions, t.Bursts.Rate = []int64{t.Transactions}, []float64{r.Rate}
	latencies{r.Min, r.P50, r.P90, r.P99, r.Mean, r.Max}.set(&t.Bursts)
}
