package cpu

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

// self is this process as a server.
type self struct{}

func (self) PID() int    { return os.Getpid() }
func (self) Local() bool { return true }

// What a server's programs use counts as the server's: programs that still run, and their children that have ended meanwhile.
func TestProgramsCount(t *testing.T) {
	// It starts a child for each line that it reads, and answers when the child has ended.
	const serve = `while read line; do sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo done; done`
	cmd := exec.Command("/bin/sh", "-c", serve)
	in, out := require.Pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	k := &Kernel{root: "/proc", clock: procfile.ProcessCPU}
	m := k.Meter(self{}, nil)
	if err := m.Programs([]Process{self{}}); err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	for range 4 {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintln(in, "go"); err != nil {
			t.Fatal(err)
		}
		if _, err := said.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		spent, err := m.Stop(engine.Burst{})
		if err != nil {
			t.Fatal(err)
		}
		sum += spent.Server
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	want := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	// This process is the server and uses some itself, and what ended children used is told in ticks.
	if low, high := want*9/10-40*time.Millisecond, want*11/10+100*time.Millisecond; sum < low || sum > high {
		t.Errorf("the server has used %v, its program %v of it", sum, want)
	}
	if _, err := m.read(); err != nil {
		t.Errorf("a program that has ended makes the meter fail: %v", err)
	}
}

// A server that is a program tells of it what can be read from here.
func TestProgramTellsTheSame(t *testing.T) {
	require.Namespaces(t)
	require.Tool(t, "nginx")
	cpu, k := allowed(t)
	p := open(t, "http", cpu)
	m := k.Meter(p.Server, []int{cpu})
	if err := m.Programs([]Process{p.Server}); err != nil {
		t.Fatal(err)
	}
	before := told(t, p)
	_, spent := measured(t, p, m)
	if says := told(t, p) - before; says < spent.Server*9/10-time.Millisecond || says > spent.Server*11/10+time.Millisecond {
		t.Errorf("nginx used %v as read from here, and %v as its agent says", spent.Server, says)
	}
}
