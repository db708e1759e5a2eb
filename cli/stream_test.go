package cli

import (
	"bufio"
	"errors"
	"io"
	"testing"
	"time"
)

// Unread messages are given up one by one, and once they are read again those that follow arrive.
func TestStreamThatIsNotRead(t *testing.T) {
	in, out := io.Pipe()
	s := &stream{to: out, most: 10 * time.Millisecond}
	for _, text := range []string{"held\n", "lost\n"} {
		if _, err := s.Write([]byte(text)); !errors.Is(err, errUnread) {
			t.Errorf("%q: %v, want %v", text, err, errUnread)
		}
	}
	lines := bufio.NewScanner(in)
	if !lines.Scan() || lines.Text() != "held" {
		t.Errorf("read is %q first", lines.Text())
	}
	<-s.held
	s.most = 0
	go func() { _, _ = s.Write([]byte("later\n")) }()
	if !lines.Scan() || lines.Text() != "later" {
		t.Errorf("read is %q after what was held", lines.Text())
	}
}
