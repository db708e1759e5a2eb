package workloadtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/leak"
	"netdelta/internal/procfile"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/workload"
)

// serverPort is the variable of the environment by which a test's program is told to be a server.
const serverPort = "NETDELTA_WORKLOADTEST_PORT"

// Main is what a TestMain calls, and exits with its result: it runs the tests, or a server for one of them.
func Main(m *testing.M, w workload.Workload) int {
	port := os.Getenv(serverPort)
	if port == "" {
		return leak.Main(m)
	}
	if err := serve(w, port); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve serves with default parameters until standard input ends.
func serve(w workload.Workload, port string) error {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	s, err := w.Serve(context.Background(), w.Defaults, loopback(uint16(number)), -1)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return s.Close()
}

// Process is a server in a process of its own, with the daemons that it has started.
type Process struct{ process *os.Process }

// Signal sends a signal to the process and to all below it.
func (p Process) Signal(s syscall.Signal) error {
	for _, pid := range append([]int{p.process.Pid}, below(p.process.Pid)...) {
		if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// below are the processes below one.
func below(pid int) (all []int) {
	for _, child := range procfile.Children(pid) {
		all = append(append(all, child), below(child)...)
	}
	return all
}

// Kill kills the process alone: what it has started ends with it.
func (p Process) Kill() error { return p.process.Kill() }

// Server starts a server of the workload with default parameters in a process of its own. It is killed with the test.
func Server(t testing.TB) (Process, netip.AddrPort) {
	t.Helper()
	port := freePort(t, 1)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverPort+"="+strconv.Itoa(int(port)))
	cmd.Stderr = os.Stderr
	in, out := require.Pipes(t, cmd)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the server's process said %q: %v", line, err)
	}
	return Process{cmd.Process}, loopback(port)
}

// Dial arms a client to a server in another process. It is closed with the test.
func Dial(t testing.TB, w workload.Workload, p result.Params, server netip.AddrPort) engine.Client {
	t.Helper()
	c, err := w.Dial(within(t, starting), p, loopback(0), server, -1)
	require.NoError(t, err)
	t.Cleanup(func() { mustClose(t, c) })
	return c
}

// countsFromIntendedStart stalls the server for a while in the midst of an open-loop burst. All requests that should have
// started meanwhile are late, and must say so: a client that waits with sending until the server answers again, and counts
// from there, would show one late request only.
func countsFromIntendedStart(t *testing.T, w workload.Workload) {
	params := w.Defaults
	params.RequestRate = 1000
	if w.Check(params) != nil {
		t.Log("the workload has no request rate: there is nothing to test")
		return
	}
	process, address := Server(t)
	c := Dial(t, w, params, address)
	const stall = 50 * time.Millisecond
	time.AfterFunc(100*time.Millisecond, func() {
		_ = process.Signal(syscall.SIGSTOP)
		time.Sleep(stall)
		_ = process.Signal(syscall.SIGCONT)
	})
	b := burst(t, c, engine.BurstSpec{Duration: 400 * time.Millisecond})
	if b.Transactions != 400 || b.Duration < 399*time.Millisecond {
		t.Errorf("%d transactions in %v, want 400 in 400 ms", b.Transactions, b.Duration)
	}
	if b.P99 < float64(stall)*0.8 {
		t.Errorf("p99 is %v after a stall of %v", time.Duration(b.P99), stall)
	}
	h, err := hdrhistogram.Decode([]byte(collect(t, c, false).Histogram))
	require.NoError(t, err)
	late := int64(0)
	for _, bar := range h.Distribution() {
		if bar.From >= int64(stall/5) {
			late += bar.Count
		}
	}
	// Four fifths of the requests of the stall wait for a fifth of it or more.
	if late < 30 {
		t.Errorf("%d requests were late after a stall of %v at 1000 requests a second", late, stall)
	}
}

func namesHang(t *testing.T, w workload.Workload) {
	process, address := Server(t)
	c := Dial(t, w, w.Defaults, address)
	burst(t, c, engine.BurstSpec{Transactions: 10})
	require.NoError(t, process.Signal(syscall.SIGSTOP))
	begin := time.Now()
	// More than fits into the buffers of the path, so that a stream hangs too.
	_, err := c.Burst(engine.BurstSpec{Transactions: 1 << 20, Duration: time.Minute, Deadline: 500 * time.Millisecond})
	checkFault(t, w, address, begin, err)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "500ms") {
		t.Errorf("error of a server that hangs: %v", err)
	}
	if _, again := c.Burst(engine.BurstSpec{Transactions: 1}); again == nil {
		t.Error("a client that has failed runs another burst")
	}
}

func namesDeath(t *testing.T, w workload.Workload) {
	process, address := Server(t)
	c := Dial(t, w, w.Defaults, address)
	burst(t, c, engine.BurstSpec{Transactions: 10})
	time.AfterFunc(100*time.Millisecond, func() { _ = process.Kill() })
	begin := time.Now()
	_, err := c.Burst(engine.BurstSpec{Duration: 2 * time.Second, Deadline: 3 * time.Second})
	checkFault(t, w, address, begin, err)
}

func checkFault(t *testing.T, w workload.Workload, server netip.AddrPort, begin time.Time, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("a burst without its server succeeds")
	}
	if !strings.Contains(err.Error(), w.Name) || !strings.Contains(err.Error(), server.String()) {
		t.Errorf("the error does not name %s and %v: %v", w.Name, server, err)
	}
	if spent := time.Since(begin); spent > 8*time.Second {
		t.Errorf("it took %v to notice: %v", spent, err)
	}
}

func closes(t *testing.T, w workload.Workload) {
	p := open(t, w, w.Defaults)
	ended := make(chan error, 1)
	go func() {
		_, err := p.client.Burst(engine.BurstSpec{Duration: time.Minute, Deadline: 2 * time.Minute})
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond) // the burst runs: of all workloads alike, nothing can be seen of that
	for range 2 {
		mustClose(t, p.client)
		mustClose(t, p.server)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a burst that was closed succeeds")
		}
	case <-time.After(patience):
		t.Fatal("close did not end the burst")
	}
	if _, err := p.client.Burst(engine.BurstSpec{Transactions: 1}); err == nil {
		t.Error("a closed client runs a burst")
	}
	if _, err := p.client.Collect(false); err != nil {
		t.Errorf("collect after close: %v", err)
	}
	p.server.Totals()
}

func servesAgain(t *testing.T, w workload.Workload) {
	ports := freePort(t, 1+w.SourcePorts(w.Defaults))
	for i := range 5 {
		p := openOn(t, w, w.Defaults, loopback(ports+1), loopback(ports))
		burst(t, p.client, engine.BurstSpec{Transactions: 20})
		// The end that closes first must not leave the ports in a state that keeps the next from using them.
		if i%2 == 0 {
			mustClose(t, p.client)
		}
		mustClose(t, p.server)
		mustClose(t, p.client)
	}
}

func leaksNothing(t *testing.T, w workload.Workload) {
	once := func() {
		ports := freePort(t, 1+w.SourcePorts(w.Defaults))
		server, err := w.Serve(within(t, starting), w.Defaults, loopback(ports), -1)
		require.NoError(t, err)
		client, err := w.Dial(within(t, starting), w.Defaults, loopback(ports+1), loopback(ports), -1)
		require.NoError(t, err)
		burst(t, client, engine.BurstSpec{Transactions: 5})
		mustClose(t, client)
		mustClose(t, server)
	}
	once() // what is made once in a process
	files, threads := inUse(t)
	goroutines, memory := runtime.NumGoroutine(), mapped(t)
	times := 20
	if foreign(w) {
		times = 6
	}
	for range times {
		once()
	}
	require.NoError(t, require.Await(patience, "nothing is left", func() error {
		f, th := inUse(t)
		g, m := runtime.NumGoroutine(), mapped(t)
		// The scheduler keeps some threads; a leak would be one or more each time.
		if f <= files && th < threads+times/2 && g <= goroutines && m < memory+int64(times)*500_000 {
			return nil
		}
		return fmt.Errorf("after %d times: files %d -> %d, threads %d -> %d, goroutines %d -> %d, mapped bytes %d -> %d",
			times, files, f, threads, th, goroutines, g, memory, m)
	}))
}

// mapped is how much memory is resident outside the Go heap, roughly: enough to see whole arenas leak.
func mapped(t testing.TB) int64 {
	t.Helper()
	runtime.GC()
	statm, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var total, resident int64
	if _, err := fmt.Sscan(string(statm), &total, &resident); err != nil {
		t.Fatal(err)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return resident*int64(unix.Getpagesize()) - int64(stats.HeapSys-stats.HeapReleased)
}
