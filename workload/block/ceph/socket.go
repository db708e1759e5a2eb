package ceph

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"

	"netdelta/internal/daemon"
)

// answerRoom is the longest answer that is read from a daemon.
const answerRoom = 16 << 20

// ask puts a question to a daemon by its admin socket, which takes no network, and unpacks the answer. The protocol: a command in
// JSON ended by a zero byte; four bytes with the length of the answer, most significant first, and the answer in JSON.
func ask(ctx context.Context, h *daemon.Sandbox, name, command string, answer any) error {
	fail := func(err error) error {
		return fmt.Errorf("ask ceph-%s for %s by its admin socket: %w", name, command, err)
	}
	var conn net.Conn
	err := h.Do(func() (err error) { // only there is the socket seen
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", place(h, name+".asok"))
		return err
	})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = conn.Close() }() // nothing is left to be written
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	text, err := exchange(conn, command)
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	if err != nil {
		return fail(err)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fail(fmt.Errorf("%w: %.200q", err, text))
	}
	return nil
}

// exchange sends a command and reads the answer to it.
func exchange(conn io.ReadWriter, command string) ([]byte, error) {
	request, err := json.Marshal(map[string]string{"prefix": command, "format": "json"})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(request, 0)); err != nil {
		return nil, err
	}
	var length uint32
	if err := binary.Read(conn, binary.BigEndian, &length); err != nil {
		return nil, err
	}
	if length > answerRoom {
		return nil, fmt.Errorf("an answer of %d bytes, more than %d", length, answerRoom)
	}
	text := make([]byte, length)
	_, err = io.ReadFull(conn, text)
	return text, err
}
