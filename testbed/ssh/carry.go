package ssh

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"netdelta/internal/gather"
	"netdelta/internal/machine"
	"netdelta/internal/tail"
	"netdelta/testbed"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
)

// Options say how servers are reached and used.
type Options struct {
	Nodes []Node
	NIC   servers.NIC
	// Sudo has the program run as root by sudo -n.
	Sudo bool
	// Silence, Return and Least are as in servers.Options.
	Silence, Return time.Duration
	Least           int
	// Command is the ssh program with its first arguments; nil is ssh.
	Command []string
	// Program finds the file that is sent to servers of an architecture, as Go names it; nil is machine.SentProgramFor.
	Program func(arch string) (string, error)
}

const (
	// silent is how long ssh waits for a server that does not answer, in seconds, and how often it asks.
	silent, silences = 10, 3
	// reachWithin is how long ssh may take to reach a server, in seconds.
	reachWithin = 15
)

// link is the connection to one server: a process of ssh.
type link struct {
	node   Node
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	pipe   io.ReadCloser
	stderr *tail.Tail

	leave  time.Duration // how long the server may take to give back everything
	close  sync.Once
	ended  chan struct{}
	status error // set before ended is closed
}

// arguments of ssh for a node.
func (o Options) arguments(n Node, remote string) []string {
	args := []string{
		"-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-o", "ClearAllForwardings=yes", "-o", fmt.Sprintf("ConnectTimeout=%d", reachWithin),
		"-o", fmt.Sprintf("ServerAliveInterval=%d", silent), "-o", fmt.Sprintf("ServerAliveCountMax=%d", silences),
	}
	if n.Port != 0 {
		args = append(args, "-p", strconv.Itoa(n.Port))
	}
	return append(args, "--", n.Host, remote)
}

// Kind is the name of the kind of testbed.
const Kind = "ssh"

// carrier reaches one server.
type carrier struct {
	Node
	options Options
}

// Machines are the servers.
func (o Options) Machines() []servers.Carrier {
	return gather.Each(o.Nodes, func(n Node) servers.Carrier { return carrier{n, o} })
}

// Open reaches all servers, or enough of them, and makes nodes of them. On an error nothing is left there.
func Open(ctx context.Context, o Options) (*servers.Servers, error) {
	return servers.Open(ctx, servers.Options{Kind: Kind, Machines: o.Machines(), NIC: o.NIC, Silence: o.Silence, Return: o.Return, Least: o.Least})
}

// Begin implements servers.Carrier: it starts ssh, sends the program and gives it its order.
func (c carrier) Begin(ctx context.Context, order server.Order) (servers.Link, error) {
	l, err := c.options.begin(ctx, c.Node, order)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// begin starts ssh to a node, sends it the program and gives it its order. What follows on the link is what the order says.
func (o Options) begin(ctx context.Context, n Node, order server.Order) (l *link, err error) {
	command := o.Command
	if command == nil {
		command = []string{"ssh"}
	}
	args := append(append([]string{}, command[1:]...), o.arguments(n, script(order.Folder, o.Sudo))...)
	l = &link{node: n, leave: servers.Leave(order), cmd: exec.Command(command[0], args...), stderr: tail.New(4 << 10), ended: make(chan struct{})}
	l.cmd.Stderr = l.stderr
	l.cmd.WaitDelay = time.Second
	// An interrupt at the terminal is for this program, which then ends the link in good order.
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, into, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.pipe, l.out, l.cmd.Stdout = out, bufio.NewReaderSize(out, blockSize), into
	err = l.cmd.Start()
	_ = into.Close() // ssh has its own
	if err != nil {
		_ = out.Close()
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("reach %s: there is no ssh on this machine: install the package openssh-client", n)
		}
		return nil, fmt.Errorf("reach %s: %w", n, err)
	}
	go func() {
		l.status = l.cmd.Wait()
		close(l.ended)
	}()
	stop := context.AfterFunc(ctx, func() { _ = l.cmd.Process.Kill() })
	err = l.send(o, order)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, l.Fail("set up", err)
	}
	return l, nil
}

// send follows the script on the server.
func (l *link) send(o Options, order server.Order) error {
	late := time.AfterFunc(loginWithin, func() { _ = l.cmd.Process.Kill() })
	ready, err := l.await(sayReady)
	if !late.Stop() {
		err = fmt.Errorf("its login did not come to an end within %s", loginWithin)
	}
	if err != nil {
		return err
	}
	if len(ready) != 2 {
		return fmt.Errorf("it said %q", strings.Join(ready, " "))
	}
	find := o.Program
	if find == nil {
		find = machine.SentProgramFor
	}
	arch, known := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[ready[0]]
	if !known {
		return fmt.Errorf("its processor is %s: netdelta runs on x86_64 and aarch64", ready[0])
	}
	path, err := find(arch)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read what is sent to servers: %w", err)
	}
	if over := len(program) % blockSize; over > 0 { // zeros after the end of a program change nothing
		program = append(program, make([]byte, blockSize-over)...)
	}
	if _, err = fmt.Fprintln(l.in, len(program)/blockSize); err == nil {
		_, err = io.Copy(l.in, bytes.NewReader(program))
	}
	if err != nil {
		return fmt.Errorf("send the program: %w", err)
	}
	there, err := l.await(sayHash)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	if len(there) == 0 || there[0] != hex.EncodeToString(sum[:]) {
		return errors.New("the program arrived damaged: its hash is another one there")
	}
	order.Address = strings.TrimPrefix(ready[1], "-")
	text, err := json.Marshal(order)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.in, "%s\n", text)
	return err
}

const (
	// loginMost bounds what a login may print before the script's line, in bytes, and loginWithin how long it may take.
	loginMost   = 256 << 10
	loginWithin = 2 * time.Minute
	// loginShown is how much of the beginning and of the end of that an error has.
	loginShown = 48
)

// await reads lines up to one that begins with a word, and returns the words after it.
func (l *link) await(word string) ([]string, error) {
	said, last := 0, tail.New(loginShown)
	var first []byte
	for {
		line, err := tail.Line(l.out, loginMost-said)
		if fields := strings.Fields(string(line)); err == nil && len(fields) > 0 && fields[0] == word {
			return fields[1:], nil
		}
		said += len(line)
		first = append(first, line[:min(len(line), loginShown-len(first))]...)
		_, _ = last.Write(line) // it never fails
		if errors.Is(err, tail.ErrEndless) {
			return nil, fmt.Errorf("%w at a login: %d KiB begin with %q and end with %q; have what the shell starts with there say nothing where there is no terminal",
				tail.ErrEndless, said>>10, first, last)
		}
		if err != nil {
			return nil, errors.New("the connection ended")
		}
	}
}

// Read implements io.Reader.
func (l *link) Read(b []byte) (int, error) { return l.out.Read(b) }

// Write implements io.Writer.
func (l *link) Write(b []byte) (int, error) { return l.in.Write(b) }

// CloseWrite implements servers.Link.
func (l *link) CloseWrite() error { return l.in.Close() }

// errKilled is the error of a server that did not end in time.
var errKilled = errors.New("it did not end in time; netdelta cleanup --nodes finds what it left")

// Close ends the server's part by the end of its input, and waits until everything is given back there.
func (l *link) Close() (err error) {
	l.close.Do(func() {
		_ = l.in.Close()
		go func() {
			// Else it may wait for us. What goes on talking is no supervisor that ends.
			if n, _ := io.CopyN(io.Discard, l.pipe, servers.LastWords); n == servers.LastWords {
				_ = l.cmd.Process.Kill()
			}
		}()
		select {
		case <-l.ended:
		case <-time.After(l.leave):
			_ = l.cmd.Process.Kill()
			<-l.ended
			err = errKilled
		}
		_ = l.pipe.Close()
	})
	<-l.ended
	if err == nil {
		err = l.status
	}
	return err
}

// ignoreClosed drops how ssh ended: what it said is told by failure.
func ignoreClosed(err error) error {
	if errors.Is(err, errKilled) {
		return err
	}
	return nil
}

// The lines by which the script on the server and this end agree. What else a login prints comes before them.
const (
	sayReady = "netdelta-ready" // with the machine's architecture, and the server's own address of this connection
	sayHash  = "netdelta-hash"  // with the SHA-256 of what arrived
)

// blockSize is how the program is sent: in whole blocks, since dd then reads no byte of what follows.
const blockSize = 64 << 10

// script takes the program to a folder of its own and runs it. It reads two lines: how many blocks come, and, when this end has
// compared the hash, the order. At the end the folder is removed. It asks a POSIX shell and dd, sha256sum, uname for what every server has.
func script(folder string, sudo bool) string {
	as := ""
	check := ":"
	if sudo {
		as = "sudo -n "
		check = `sudo -n true || { echo "sudo -n is refused: allow this user to run commands as root without a password, or name a user who is root" >&2; exit 1; }`
	}
	text := fmt.Sprintf(`umask 077
d=%[1]s
%[2]s
mkdir "$d" || exit 1
trap 'rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
set -- $SSH_CONNECTION
echo "%[3]s $(uname -m) ${3:--}"
read -r n || exit 1
said=$(dd of="$d/%[4]s" bs=%[5]d count="$n" iflag=fullblock 2>&1) || { echo "$said" >&2; exit 1; }
echo "%[6]s $(sha256sum <"$d/%[4]s")"
IFS= read -r order || exit 1
chmod 700 "$d/%[4]s"
%[7]s"$d/%[4]s" %[8]s "$order"
`, folder, check, sayReady, machine.AgentName, blockSize, sayHash, as, server.Verb)
	// Whatever the user's shell is, it hands this to a POSIX shell as one word: there is no quote in it but those replaced here.
	return "exec sh -c " + testbed.Quoted(text)
}

// Fail implements servers.Link, with what ssh and the server said.
func (l *link) Fail(doing string, err error) error {
	if errors.Is(err, tail.ErrEndless) {
		_ = l.cmd.Process.Kill() // it would not end by the end of its input
	}
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
