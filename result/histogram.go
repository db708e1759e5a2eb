package result

import (
	"errors"
	"fmt"

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
