package ssh

import (
	"errors"
	"fmt"
	"strings"
)

// Fail implements servers.Link, with what ssh and the server said.
func (l *link) Fail(doing string, err error) error {
	if closed := l.Close(); !errors.Is(err, errKilled) {
		err = errors.Join(err, ignoreClosed(closed))
	}
	said := strings.TrimSpace(l.stderr.String())
	text := fmt.Sprintf("%s %s", doing, l.node)
	if said == "" {
		return fmt.Errorf("%s: %w", text, err)
	}
	return fmt.Errorf("%s: %w: %s%s", text, err, lastLines(said), fix(l.node, said))
}

// lastLines keeps the end of what was said: a login may say a lot.
func lastLines(text string) string {
	lines := strings.Split(text, "\n")
	const most = 4
	if len(lines) > most {
		lines = lines[len(lines)-most:]
	}
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "; ")
}

// fix says what to do about what ssh or the server said.
func fix(n Node, said string) string {
	for _, known := range []struct{ says, fix string }{
		{"REMOTE HOST IDENTIFICATION HAS CHANGED", "the server has another key than the one that you know: find out why, then remove the old one by ssh-keygen -R"},
		{"Host key verification failed", "its key is not known here: connect once by hand with ssh " + n.Host + ", compare the key and accept it"},
		{"Permission denied (", "log in by a key that needs no password here (ssh-copy-id, or an agent): ssh -o BatchMode=yes " + n.Host + " true must work"},
		{"Connection refused", "no SSH server listens there: start it, or name its port as ssh:host:port"},
		{"Could not resolve hostname", "name the server as ~/.ssh/config or the name service knows it"},
		{"timed out", "it does not answer: is it up, and does a firewall let SSH pass?"},
		{"No route to host", "is it up, and in which network?"},
		{"No space left on device", "free 20 MB in /tmp there"},
		{"Read-only file system", "/tmp must be writable there"},
		{"sudo -n is refused", ""},
		{"sudo: not found", "name a user who is root, as ssh:root@host, or install sudo there"},
		{"operation not permitted", "network namespaces take root there: name a user who is root, as ssh:root@host, or give --sudo"},
		{"Permission denied", "if /tmp is mounted noexec there, mount it without, or free /tmp/netdelta-* of others"},
		{"use the same netdelta", ""},
		{"netdelta starts this program where it measures", "what was sent is of another version: make build makes the program and its agent"},
	} {
		if strings.Contains(said, known.says) {
			if known.fix == "" {
				return ""
			}
			return "; " + known.fix
		}
	}
	return ""
}
