package cli_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"netdelta/internal/require"
)

// metricsAddress is what a run says of where its metrics are.
var metricsAddress = regexp.MustCompile(`^metrics: (http://127\.0\.0\.1:\d+/metrics)$`)

// scrape asks for metrics by a name of the machine, "" for the host of the address.
func scrape(t *testing.T, address, host string) (families map[string]*dto.MetricFamily, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, answer.StatusCode
	}
	if kind := answer.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/openmetrics-text; version=1.0.0") {
		t.Errorf("metrics are of type %q", kind)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err = parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil || !strings.HasSuffix(string(text), "# EOF\n") {
		t.Fatalf("%v in %s", err, text)
	}
	return families, answer.StatusCode
}

// A run can be watched from this machine: its progress from the beginning, and deltas once a build is done. When it has ended, the
// port is closed, and its folder holds the same.
func TestMetricsOfRun(t *testing.T) {
	require.Long(t)
	dir := labFolder(t)
	run := command(t, dir, "run", "long.yaml", "--out", "watched", "--metrics-listen", "127.0.0.1:0")
	told, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(told)
	address := ""
	for address == "" && lines.Scan() {
		if found := metricsAddress.FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	go func() {
		for lines.Scan() { // a run must not wait for its reader
		}
	}()
	if address == "" {
		t.Fatal("the run does not say where its metrics are")
	}
	seen := map[string]*dto.MetricFamily{}
	for deadline := time.Now().Add(patience); len(seen["netdelta_delta_ratio"].GetMetric()) == 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		seen, _ = scrape(t, address, "")
	}
	for _, name := range []string{"netdelta_delta_ratio", "netdelta_delta_value_seconds", "netdelta_progress_build", "netdelta_progress_elapsed_seconds", "netdelta_trials", "netdelta_run_info"} {
		if len(seen[name].GetMetric()) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	if _, status := scrape(t, address, "elsewhere.example"); status != http.StatusForbidden {
		t.Errorf("a page of elsewhere is answered with %d", status)
	}
	if _, status := scrape(t, strings.TrimSuffix(address, "metrics"), ""); status != http.StatusNotFound {
		t.Errorf("what is no metrics is answered with %d", status)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := run.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // it ends with the status of an interruption
	if status := run.ProcessState.ExitCode(); status != statusInterrupted {
		t.Errorf("the run ended with %d", status)
	}
	if _, err := http.Get(address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("somebody listens still: %v", err)
	}
	kept := read(t, filepath.Join(dir, "watched", "metrics.txt"))
	if !strings.Contains(kept, `netdelta_delta_ratio{study="long",network="bridge"`) || !strings.HasSuffix(kept, "# EOF\n") || strings.Contains(kept, "netdelta_progress") {
		t.Errorf("the folder has %s", kept)
	}
}

// A port that is taken ends the run before it begins.
func TestMetricsPortTaken(t *testing.T) {
	dir := labFolder(t)
	server := &http.Server{ReadHeaderTimeout: time.Second}
	listener := listenHere(t)
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	e := call(t, dir, statusFailed, "run", "small.yaml", "--out", "none", "--metrics-listen", listener.Addr().String())
	e.says(t, "--metrics-listen: ", listener.Addr().String(), "address already in use")
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a run folder was made")
	}
}

// listenHere is a socket of this test on loopback.
func listenHere(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}
