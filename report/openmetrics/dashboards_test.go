package openmetrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/result"
)

// dashboards is the folder of the dashboards.
const dashboards = "../../deploy/grafana"

// dashboard is what the tests see of one.
type dashboard struct {
	UID, Title string
	Panels     []struct {
		ID          int
		Type, Title string
		Targets     []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
}

// boards reads all dashboards.
func boards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dashboards, "*.json"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d dashboards in %s: %v", len(files), dashboards, err)
	}
	all := map[string]dashboard{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var d dashboard
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID != strings.TrimSuffix(filepath.Base(file), ".json") {
			t.Errorf("%s has the uid %q", file, d.UID)
		}
		all[file] = d
	}
	return all
}

// labelValues is what variables are read by.
var labelValues = regexp.MustCompile(`^label_values\((.*), ([a-z]+)\)$`)

// queries are all that a dashboard asks Prometheus for, by where it does. Of a variable's values it is the series that have the label.
func (d dashboard) queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			all[fmt.Sprintf("panel %s, query %d", p.Title, i+1)] = target.Expr
		}
		if len(p.Targets) == 0 {
			t.Errorf("panel %s asks for nothing", p.Title)
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		var q struct{ Query string }
		if err := json.Unmarshal(v.Query, &q); err != nil {
			t.Fatal(err)
		}
		parts := labelValues.FindStringSubmatch(q.Query)
		if parts == nil {
			t.Fatalf("variable %s: %q", v.Name, q.Query)
		}
		all["variable "+v.Name] = fmt.Sprintf("group by (%s) (%s)", parts[2], parts[1])
	}
	for where, query := range all {
		for name, value := range map[string]string{"study": "latency", "metric": "p50", "placement": ".*", "load": ".*", "network": ".*"} {
			query = strings.ReplaceAll(query, "$"+name, value)
		}
		if strings.Contains(query, "$") {
			t.Errorf("%s has a variable that the dashboard does not have: %s", where, query)
		}
		all[where] = query
	}
	return all
}

// running is the sample while it is under way, which has all metrics.
func running(t *testing.T) Snapshot {
	t.Helper()
	s := sample(t)
	s.Progress = &Progress{Build: 3, Round: 4, Rounds: 20, Cells: 3, Open: 1, Elapsed: 12 * time.Second, Budget: time.Minute}
	s.Run.Account = &result.Account{Bursts: 100, LostBursts: map[string]int{"preempted": 3}}
	return s
}

// Dashboards ask for metrics that are exported, and nothing is asked for twice under one name.
func TestDashboardsAskForWhatIsExported(t *testing.T) {
	families := parse(t, written(t, running(t)))
	name := regexp.MustCompile(`netdelta_[a-z0-9_]+`)
	for file, d := range boards(t) {
		var ids []int
		for _, p := range d.Panels {
			if slices.Contains(ids, p.ID) {
				t.Errorf("%s: two panels %d", file, p.ID)
			}
			ids = append(ids, p.ID)
		}
		for where, query := range d.queries(t) {
			for _, metric := range name.FindAllString(query, -1) {
				if families[metric] == nil {
					t.Errorf("%s, %s: no metric is called %s", file, where, metric)
				}
			}
		}
	}
}

// started starts a server, which ends with the test, and waits until it answers.
func started(t *testing.T, ready string, program string, args ...string) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // by the signal
	})
	if err := require.Await(time.Minute, "an answer of "+filepath.Base(program), func() error {
		_, err := get(ready)
		return err
	}); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%v: it said:\n%s", err, &said)
	}
}

// get is the answer at an address.
func get(address string) ([]byte, error) {
	answer, err := http.Get(address) //nolint:noctx // the server ends with the test
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", address, answer.Status, text)
	}
	return text, err
}

// freeAddress is a loopback address that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Every query of every dashboard has an answer of a real Prometheus that has scraped a run.
func TestDashboardsInPrometheus(t *testing.T) {
	prometheus := require.Tool(t, "prometheus")
	text := written(t, running(t))
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ContentType)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(exporter.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "scrape_configs:\n  - {job_name: netdelta, scrape_interval: 3s, scrape_timeout: 3s, static_configs: [{targets: [%q]}]}\n",
		exporter.Listener.Addr()), 0o600); err != nil {
		t.Fatal(err)
	}
	at := freeAddress(t)
	started(t, "http://"+at+"/-/ready", prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+at)
	ask := func(query string) (series int, err error) {
		answer, err := get("http://" + at + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
		if err != nil {
			return 0, err
		}
		var said struct {
			Data struct{ Result []json.RawMessage }
		}
		err = json.Unmarshal(answer, &said)
		return len(said.Data.Result), err
	}
	require.Eventually(t, time.Minute, "a scrape of the run", func() bool {
		series, err := ask("netdelta_run_info")
		return err == nil && series > 0
	})
	for file, d := range boards(t) {
		for where, query := range d.queries(t) {
			series, err := ask(query)
			if err == nil && series == 0 { // a scrape that took too long leaves nothing until the next
				require.Eventually(t, time.Minute, fmt.Sprintf("a series for %s, %s: %s", filepath.Base(file), where, query), func() bool {
					series, err = ask(query)
					return err != nil || series > 0
				})
			}
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", filepath.Base(file), where, err, query)
			}
		}
	}
}

// A real Grafana loads the dashboards. None of the registries that the tests' tools come from has one: where it is there, it is asked.
func TestDashboardsInGrafana(t *testing.T) {
	grafana := require.Tool(t, "grafana")
	dir := t.TempDir()
	from, err := filepath.Abs(dashboards)
	if err != nil {
		t.Fatal(err)
	}
	provision := filepath.Join(dir, "provisioning", "dashboards")
	if err := os.MkdirAll(provision, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(provision, "netdelta.yaml"),
		fmt.Appendf(nil, "apiVersion: 1\nproviders:\n  - {name: netdelta, type: file, options: {path: %q}}\n", from), 0o600); err != nil {
		t.Fatal(err)
	}
	at := freeAddress(t)
	_, port, _ := net.SplitHostPort(at)
	started(t, "http://"+at+"/api/health", grafana, "server", "--homepath=/usr/share/grafana", "cfg:default.server.http_addr=127.0.0.1", "cfg:default.server.http_port="+port,
		"cfg:default.paths.data="+dir, "cfg:default.paths.logs="+dir, "cfg:default.paths.provisioning="+filepath.Join(dir, "provisioning"),
		"cfg:default.auth.anonymous.enabled=true", "cfg:default.analytics.reporting_enabled=false", "cfg:default.analytics.check_for_updates=false")
	for _, d := range boards(t) {
		if err := require.Await(time.Minute, "the dashboard "+d.UID, func() error {
			text, err := get("http://" + at + "/api/dashboards/uid/" + d.UID)
			if err == nil && !strings.Contains(string(text), d.Title) {
				err = fmt.Errorf("it has not the title %q", d.Title)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}
