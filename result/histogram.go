package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The form of histograms: their least and greatest value, and the digits that are kept of each.
const (
	histogramLeast  = 1
	histogramMost   = 60_000_000_000
	histogramDigits = 3
)

// NewHistogram returns an empty histogram for latencies in nanoseconds: 1 ns to 60 s, each value kept to within 0.1%.
// It is not safe for concurrent use.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(histogramLeast, histogramMost, histogramDigits)
}

// EncodeHistogram returns h in the HdrHistogram V2 compressed encoding, as base64.
func EncodeHistogram(h *hdrhistogram.Histogram) (string, error) {
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode a histogram: %w", err)
	}
	return string(encoded), nil
}

// DecodeHistogram reads what EncodeHistogram, or any other writer of the HdrHistogram V2 compressed encoding, has written. It keeps
// the buckets that hold something: a trial fills a few hundred of 28,000.
func DecodeHistogram(encoded string) (*hdrhistogram.PackedHistogram, error) {
	if encoded == "" {
		return nil, errors.New("decode a histogram: it is empty")
	}
	h, err := hdrhistogram.DecodePacked([]byte(encoded))
	if err != nil {
		return nil, fmt.Errorf("decode a histogram: %w", err)
	}
	return h, nil
}

// AddHistogram adds an encoded histogram to a sum; "" adds nothing. It is an error if a value is out of NewHistogram's range.
func AddHistogram(sum *hdrhistogram.Histogram, encoded string) error {
	if encoded == "" {
		return nil
	}
	h, err := DecodeHistogram(encoded)
	if err != nil {
		return err
	}
	if dropped := h.MergeInto(sum); dropped > 0 {
		return fmt.Errorf("merge histograms: %d values lie outside 1 ns to 60 s", dropped)
	}
	return nil
}

// MergeHistograms adds up encoded histograms. Percentiles of the sum are percentiles of all transactions together, which no
// mean of percentiles gives. It fails where AddHistogram does.
func MergeHistograms(encoded ...string) (*hdrhistogram.Histogram, error) {
	sum := NewHistogram()
	for _, e := range encoded {
		if err := AddHistogram(sum, e); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// Split is where the latency of an operation on blocks goes: total = disk + all else. What is else on the baseline is what the
// client, the server and the baseline's own network take; a network adds what it differs by from it. Only that part depends on
// the network.
type Split struct {
	Cell    string `json:"cell"`
	Network string `json:"network"`
	Setting
	Path     string `json:"path"`
	Baseline string `json:"baseline"`
	// Total is the median latency as measured by the client.
	Total time.Duration `json:"total_ns"`
	// Disk is the median latency of the same operation on the server's storage without a network, as measured.
	Disk time.Duration `json:"disk_ns"`
	// Common is the baseline's total less the disk: a difference of two measured figures.
	Common time.Duration `json:"common_ns"`
	// Added is the network's total less the baseline's, the delta of its p50, with its interval.
	Added     time.Duration  `json:"added_ns"`
	AddedLow  *time.Duration `json:"added_low_ns"`
	AddedHigh *time.Duration `json:"added_high_ns"`
	// RoundTrip is the median round trip of tcp-rr over the same network in the same run, 0 where it was not measured; it is
	// part of Common and Added.
	RoundTrip time.Duration `json:"round_trip_ns,omitempty"`
}

// Replicated is how long a cluster took to replicate, and what its clients got done, over all trials of a cell.
type Replicated struct {
	Cell    string `json:"cell"`
	Network string `json:"network"`
	Setting
	Path string `json:"path"`
	// Mean is the median over trials of the mean replication latency, Max the worst of all.
	Mean time.Duration `json:"mean_ns"`
	Max  time.Duration `json:"max_ns"`
	// Rate is the median over trials of the transactions per second.
	Rate float64 `json:"rate"`
}

// SharedRate is how the rate of a cell came from its clients; Rate is the median over trials, by node.
type SharedRate struct {
	Cell    string `json:"cell"`
	Network string `json:"network"`
	Setting
	Path    string       `json:"path"`
	Clients []ClientRate `json:"clients"`
}

// Correlation is how what an application got done goes with what its network measures raw, over the networks of a setting.
type Correlation struct {
	Setting
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// RawWorkload, RawParams and RawMetric are what it is held against: the median round trip of tcp-rr, or the throughput of
	// tcp-stream, in the same placement under the same conditions.
	RawWorkload string `json:"raw_workload"`
	RawParams   Params `json:"raw_params"`
	RawMetric   string `json:"raw_metric"`
	RawUnit     string `json:"raw_unit"`
	// Points are the networks, the baseline first.
	Points []CorrelationPoint `json:"points"`
	// Pearson is the correlation of the logarithms, with its interval over networks; the bounds are null with fewer than four.
	Pearson     float64  `json:"pearson"`
	PearsonLow  *float64 `json:"pearson_low"`
	PearsonHigh *float64 `json:"pearson_high"`
	// Spearman is the correlation of the ranks, P how often chance alone orders the networks as much alike or unlike.
	Spearman float64 `json:"spearman"`
	P        float64 `json:"p"`
	// Verdict is what the interval of Pearson says: the application's figure rises with the raw one, it falls, or unresolved.
	Verdict string `json:"verdict"`
}

// Verdicts on a correlation.
const (
	CorrelationRises = "rises"
	CorrelationFalls = "falls"
	CorrelationOpen  = "unresolved"
)

// CorrelationPoint is one network: its raw figure and what the application got done on it, each in its unit.
type CorrelationPoint struct {
	Network string  `json:"network"`
	Path    string  `json:"path"`
	Raw     float64 `json:"raw"`
	Value   float64 `json:"value"`
}

// Tail is how many values a histogram holds, and percentiles that lie far out.
type Tail struct{ Count, P99, P999 int64 }

// Tails read the tails of encoded histograms. The zero value is ready; several goroutines may read at a time.
type Tails struct{ pool sync.Pool }

// Of reads one, as DecodeHistogram does. Inflating is most of the work, and what it takes is kept for the next one.
func (r *Tails) Of(encoded string) (Tail, error) {
	d, ok := r.pool.Get().(*tailReader)
	if !ok {
		d = new(tailReader)
	}
	defer r.pool.Put(d)
	if t, plain := d.read(encoded); plain {
		return t, nil
	}
	h, err := DecodeHistogram(encoded)
	if err != nil {
		return Tail{}, err
	}
	return Tail{h.TotalCount(), h.ValueAtPercentile(99), h.ValueAtPercentile(99.9)}, nil
}

// tailReader keeps what reading a tail takes.
type tailReader struct {
	text, packed, payload []byte
	from                  bytes.Reader
	inflate               io.ReadCloser
	buckets               []bucket
}

// bucket is one that holds something.
type bucket struct {
	index int
	count int64
}

// How the counts of NewHistogram's histograms are laid out: 2048 of single values, then 1024 for each power of two beyond.
const (
	histogramHalf    = 10 // as a power of two
	histogramBuckets = 27 << histogramHalf
	histogramHeader  = 40 // bytes
)

// read reads a histogram of NewHistogram; plain is false for any other, and for one with anything wrong.
func (d *tailReader) read(encoded string) (t Tail, plain bool) {
	var err error
	d.text = append(d.text[:0], encoded...)
	if d.packed, err = base64.StdEncoding.AppendDecode(d.packed[:0], d.text); err != nil || len(d.packed) < 8 {
		return t, false
	}
	if kind := binary.BigEndian.Uint32(d.packed); kind&^0xf0 != uint32(hdrhistogram.V2CompressedEncodingCookieBase) {
		return t, false
	}
	if size := binary.BigEndian.Uint32(d.packed[4:]); int(size) != len(d.packed)-8 || !d.unpack(d.packed[8:]) || !d.fill() {
		return t, false
	}
	for _, b := range d.buckets {
		t.Count += b.count
	}
	t.P99, t.P999 = d.at(99, t.Count), d.at(99.9, t.Count)
	return t, true
}

// unpack inflates what the counts are read from.
func (d *tailReader) unpack(packed []byte) bool {
	d.from.Reset(packed)
	var err error
	if again, ok := d.inflate.(zlib.Resetter); ok {
		err = again.Reset(&d.from, nil)
	} else {
		d.inflate, err = zlib.NewReader(&d.from)
	}
	var header [histogramHeader]byte
	if err == nil {
		_, err = io.ReadFull(d.inflate, header[:])
	}
	size := binary.BigEndian.Uint32(header[4:])
	if err != nil || binary.BigEndian.Uint32(header[:])&^0xf0 != uint32(hdrhistogram.V2EncodingCookieBase) || size > 9*histogramBuckets ||
		binary.BigEndian.Uint32(header[12:]) != histogramDigits || binary.BigEndian.Uint64(header[16:]) != histogramLeast || binary.BigEndian.Uint64(header[24:]) != histogramMost {
		return false
	}
	d.payload = slices.Grow(d.payload[:0], int(size))[:size]
	if _, err := io.ReadFull(d.inflate, d.payload); err != nil {
		return false
	}
	n, err := d.inflate.Read(header[:1]) // the end, with its checksum
	return n == 0 && errors.Is(err, io.EOF)
}

// fill reads the counts: of one bucket after the other, or below zero of so many empty ones.
func (d *tailReader) fill() bool {
	d.buckets = d.buckets[:0]
	index := 0
	for at := 0; at < len(d.payload); {
		count, n := binary.Varint(d.payload[at:])
		const longest = 7 // bytes: sums stay far from their limits, and the forms of longer ones differ
		if n <= 0 || n > longest || count < -histogramBuckets {
			return false
		}
		at += n
		if count < 0 {
			index -= int(count)
			continue
		}
		if index >= histogramBuckets {
			return false
		}
		if count > 0 {
			d.buckets = append(d.buckets, bucket{index, count})
		}
		index++
	}
	return index <= histogramBuckets
}

// at is the highest value that counts as the one at a percentile.
func (d *tailReader) at(percent float64, total int64) int64 {
	rank := max(1, min(total, int64(percent/100*float64(total)+0.5)))
	for _, b := range d.buckets {
		if rank -= b.count; rank <= 0 {
			power := max(b.index>>histogramHalf-1, 0)
			return int64(b.index-power<<histogramHalf+1)<<power - 1
		}
	}
	return 0
}
