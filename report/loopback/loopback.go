// Package loopback serves pages and metrics to the browsers and programs of this machine alone.
package loopback

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Limits of a server that only neighbours on this machine speak to.
const (
	patience  = 10 * time.Second
	maxHeader = 16 << 10
)

// Is says whether a host is this machine's loopback, by its name alone: it resolves nothing.
func Is(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// hostOf is the host of an address with or without a port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// Serve has a handler answer at a socket until what it returns is called, which closes the socket and waits for the server to end. Each
// answer may take as long as slow says, at least ten seconds.
func Serve(listener net.Listener, handler http.Handler, slow time.Duration) (stop func() error) {
	server := &http.Server{
		Handler: own(handler), ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: max(patience, slow),
		IdleTimeout: 6 * patience, MaxHeaderBytes: maxHeader,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return func() error {
		err := server.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}
}

// own refuses who asks by another name: a page from elsewhere may have its own name lead to this machine's loopback. It is told nothing.
func own(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Is(hostOf(r.Host)) {
			http.Error(w, "this is for this machine: ask for "+r.URL.Path+" at 127.0.0.1", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
