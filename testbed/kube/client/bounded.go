package client

import (
	"fmt"
	"io"
	"net/http"

	"netdelta/unit"
)

// answerMost bounds an answer: the nodes of the largest cluster fit into it.
const answerMost = 128 * unit.MiB

// Bounded has answers fail that do not end.
func Bounded(base http.RoundTripper) http.RoundTripper { return bounded{base} }

// bounded has answers fail that do not end.
type bounded struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := b.base.RoundTrip(r)
	if err == nil && a.StatusCode != http.StatusSwitchingProtocols {
		a.Body = &boundedBody{ReadCloser: a.Body, left: int64(answerMost)}
	}
	return a, err
}

// WrappedRoundTripper is what the library asks for the connections.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.base }

// boundedBody is an answer that fails after so many bytes.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("its answer has more than %v, and no answer has: is it the right server?", answerMost)
	}
	n, err := b.ReadCloser.Read(into[:min(int64(len(into)), b.left)])
	b.left -= int64(n)
	return n, err
}
