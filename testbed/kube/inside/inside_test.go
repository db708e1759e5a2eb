package inside

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/require"
)

// TestMain makes the test's binary what it tests, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == Verb {
		if err := Do(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leak.Main(m))
}

// ordered runs an order in a process of its own and returns what it wrote, less the line that says that it started.
func ordered(t *testing.T, o Order) (started Started, rest string) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, Verb, Start, string(text)).Output()
	if err != nil {
		t.Fatal(err)
	}
	line, after, _ := bytes.Cut(out, []byte("\n"))
	if err := json.Unmarshal(line, &started); err != nil {
		t.Fatalf("it said %q: %v", out, err)
	}
	return started, string(after)
}

func TestStart(t *testing.T) {
	t.Setenv("NETDELTA_SECRET", "of the test")
	s, said := ordered(t, Order{Path: "/bin/sh", Args: []string{"-c", "echo $$ $FOO; env"}, Env: []string{"FOO=bar"}})
	if want := fmt.Sprintf("%d bar\n", s.PID); s.PID == 0 || !strings.HasPrefix(said, want) || strings.Contains(said, "SECRET") {
		t.Errorf("started %+v and got %q", s, said)
	}
	if _, said = ordered(t, Order{Path: "/bin/sh", Args: []string{"-c", "env"}}); !strings.Contains(said, "PATH=/usr/local/sbin") {
		t.Errorf("without an environment: %q", said)
	}
	if _, said = ordered(t, Order{Path: "/bin/cat", Args: []string{"/proc/self/status"}, CPUs: []int{0}}); !strings.Contains(said, "Cpus_allowed_list:\t0\n") {
		t.Errorf("pinned to processor 0: %q", said)
	}
	if _, said = ordered(t, Order{Args: []string{Verb, Digest}}); said == "" {
		t.Error("this program said nothing")
	}
	for _, c := range []struct {
		o    Order
		says string
	}{
		{Order{Path: "/nonexistent/program"}, "no such file"},
		{Order{Path: "sleep"}, "absolute"},
		{Order{Path: "/etc/passwd"}, "permission denied"},
		{Order{Path: "/bin/sh", CPUs: []int{-1}}, "processor -1"},
		{Order{Path: "/bin/sh", CPUs: []int{1023}}, "pin to processors"},
	} {
		if s, _ := ordered(t, c.o); s.PID != 0 || !strings.Contains(s.Error, c.says) {
			t.Errorf("%+v: got %+v", c.o, s)
		}
	}
}

func TestDigest(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	var out bytes.Buffer
	if err := do([]string{Digest}, nil, &out); err != nil || strings.TrimSpace(out.String()) != hex.EncodeToString(sum[:]) {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// TestKill ends what a program has started, too.
func TestKill(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(Order{Path: "/bin/sh", Args: []string{"-c", "sleep 600 & echo $!; wait"}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, Verb, Start, string(text))
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	lines.Scan()
	lines.Scan()
	child, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	if err := do([]string{Kill, strconv.Itoa(cmd.Process.Pid)}, nil, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("a program that was killed ended well")
	}
	require.Ended(t, 10*time.Second, child)
	if err := do([]string{Kill, strconv.Itoa(cmd.Process.Pid)}, nil, io.Discard); err != nil {
		t.Errorf("kill a program that has ended: %v", err)
	}
	for _, pid := range []string{"", "1", "0", "-5", "x"} {
		if err := do([]string{Kill, pid}, nil, io.Discard); err == nil {
			t.Errorf("killed %q", pid)
		}
	}
}

func TestInUse(t *testing.T) {
	for name, c := range map[string]struct {
		stats map[string]string
		want  bool
	}{
		"alone":  {map[string]string{"1": "1 (netdelta) S 0 1"}, false},
		"agent":  {map[string]string{"1": "1 (netdelta) S 0 1", "7": "7 (netdelta) S 0 7"}, true},
		"zombie": {map[string]string{"1": "1 (netdelta) S 0 1", "7": "7 (a) S (b) Z 0 7"}, false},
		"other":  {map[string]string{"1": "1 (netdelta) S 0 1", "self": "9 (cat) R"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			proc := t.TempDir()
			for pid, stat := range c.stats {
				if err := os.Mkdir(filepath.Join(proc, pid), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(stat+strings.Repeat(" 0", 40)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got := inUse(proc, 1); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestTry: a way is open when something answers by TCP and by UDP, and tried until it is.
func TestTry(t *testing.T) {
	at := freePort(t)
	input, end := io.Pipe()
	lines, said := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- answer(strconv.Itoa(int(at.Port())), input, said) }()
	if line, err := bufio.NewReader(lines).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	if o := tried(t, Trial{At: []netip.AddrPort{at}, Within: 10 * time.Second}); o.Error != "" {
		t.Errorf("got %+v", o)
	}
	_ = end.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if o := tried(t, Trial{At: []netip.AddrPort{at}, Within: 100 * time.Millisecond}); !strings.Contains(o.Error, at.String()) {
		t.Errorf("without a listener: %+v", o)
	}
}

func tried(t *testing.T, trial Trial) Outcome {
	t.Helper()
	text, err := json.Marshal(trial)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := do([]string{Try, string(text)}, nil, &out); err != nil {
		t.Fatal(err)
	}
	var o Outcome
	if err := json.Unmarshal(out.Bytes(), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// freePort is a port of loopback without a listener.
func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func TestResolve(t *testing.T) {
	var out bytes.Buffer
	if err := do([]string{Resolve, "localhost", "ip4"}, nil, &out); err != nil || !strings.Contains(out.String(), "127.0.0.1") {
		t.Errorf("got %q, %v", out.String(), err)
	}
	out.Reset()
	var r Resolved
	if err := do([]string{Resolve, "no such name", "ip4"}, nil, &out); err != nil || json.Unmarshal(out.Bytes(), &r) != nil || r.Error == "" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestDevices(t *testing.T) {
	var out bytes.Buffer
	if err := do([]string{Devices}, nil, &out); err != nil {
		t.Fatal(err)
	}
	var seen Seen
	if err := json.Unmarshal(out.Bytes(), &seen); err != nil || seen.Sysctls["net.ipv4.tcp_congestion_control"] == "" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	for _, d := range seen.Devices {
		if d.Name == "lo" || d.MTU <= 0 {
			t.Errorf("got %+v", d)
		}
	}
}

func TestUnknownTask(t *testing.T) {
	for _, args := range [][]string{{}, {"x"}, {Kill}, {Digest, "x"}} {
		if err := do(args, nil, io.Discard); err == nil {
			t.Errorf("%q was done", args)
		}
	}
}
