package kube

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/internal/tail"
	"netdelta/testbed"
)

// talks answers each exec stream as a program does whose standard output has no end.
func talks(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	key := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
		base64.StdEncoding.EncodeToString(key[:]))
	const standardOutput = 1
	frame := binary.BigEndian.AppendUint16([]byte{0x82, 126}, 32<<10) // a binary message of so many bytes
	frame = append(frame, make([]byte, 32<<10)...)
	for frame[4] = standardOutput; err == nil; {
		_, err = conn.Write(frame)
	}
}

// TestPodsWithoutEnd: a program in a pod that says something without end is given up, and its stream is cut.
func TestPodsWithoutEnd(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(talks))
	t.Cleanup(web.Close)
	c, err := connectBy(t, config(web.URL, "", ""))
	require.NoError(t, err)
	at := ContainerRef{Namespace: "n", Pod: "p", Container: "c", Program: "/netdelta"}
	for name, ask := range map[string]func(context.Context) error{
		"a program": func(ctx context.Context) error {
			_, err := Exec(ctx, c, at, testbed.Command{})
			return err
		},
		"a task": func(ctx context.Context) error {
			_, err := runOnce(ctx, c, at, []string{"x"})
			return err
		},
		"a server": func(ctx context.Context) error {
			_, err := listen(ctx, c, at, 1)
			return err
		},
	} {
		ended := make(chan error, 1)
		go func() { ended <- ask(t.Context()) }()
		select {
		case err := <-ended:
			if !errors.Is(err, tail.ErrEndless) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(promptly):
			t.Errorf("%s is waited for", name)
		}
	}
}
