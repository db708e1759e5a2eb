package loopback_test

import (
	"testing"

	"netdelta/report/loopback"
)

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "::1": true, "10.0.0.1": false, "localhost.example.org": false} {
		if loopback.Is(host) != want {
			t.Errorf("%s is loopback: %v", host, !want)
		}
	}
}
