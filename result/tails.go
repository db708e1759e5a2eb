package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

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
