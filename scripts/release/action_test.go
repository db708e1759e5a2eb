package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"netdelta/internal/require"
)

// forge is as much of GitHub's interface as the action calls: the comments of pull request 7.
type forge struct {
	comments []map[string]any
	refuses  bool
	calls    []string
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.calls = append(f.calls, r.Method+" "+r.URL.RequestURI())
	var sent struct{ Body string }
	text, _ := io.ReadAll(r.Body)
	switch {
	case f.refuses || r.Header.Get("Authorization") != "Bearer secret":
		http.Error(w, `{"message": "Resource not accessible by integration"}`, http.StatusForbidden)
		return
	case r.Method == http.MethodGet && r.URL.Path == "/repos/me/mine/issues/7/comments":
		page := f.comments
		if r.URL.Query().Get("page") != "1" {
			page = nil
		}
		_ = json.NewEncoder(w).Encode(append([]map[string]any{}, page...))
		return
	case json.Unmarshal(text, &sent) != nil || sent.Body == "":
		http.Error(w, "no document", http.StatusBadRequest)
		return
	case r.Method == http.MethodPost && r.URL.Path == "/repos/me/mine/issues/7/comments":
		f.comments = append(f.comments, map[string]any{"id": 100 + len(f.comments), "body": sent.Body})
	case r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/repos/me/mine/issues/comments/"):
		for _, c := range f.comments {
			if strings.HasSuffix(r.URL.Path, fmt.Sprint("/", c["id"])) {
				c["body"] = sent.Body
			}
		}
	default:
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, "{}")
}

// job runs the action's script as a job of GitHub does, and returns its exit status and what it printed. The program says what compare says.
func job(t *testing.T, url, event string, status int, table string, more ...string) (code int, out, summary string) {
	t.Helper()
	for _, tool := range []string{"curl", "jq"} {
		require.Tool(t, tool)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
		return path
	}
	write("table", table)
	program := write("netdelta", fmt.Sprintf(`#!/bin/sh
[ "$1 $2 $3" = "compare runs/a b runs/c" ] || [ "$2" = "runs/a b" ] || exit 2
case "$*" in *md) cat %s/table ;; *github) echo "::error title=Regression::vxlan" ;; esac
[ %d = 0 ] || echo "netdelta: it ended with %[2]d" >&2
exit %[2]d
`, dir, status))
	cmd := exec.CommandContext(t.Context(), root+"/deploy/action/compare.sh")
	cmd.Env = append(append(os.Environ(),
		"OLD=runs/a b", "NEW=runs/c", "MARGIN=5%", "NETDELTA="+program, "GITHUB_TOKEN=secret", "GITHUB_API_URL="+url, "GITHUB_REPOSITORY=me/mine",
		"GITHUB_EVENT_PATH="+write("event.json", event), "GITHUB_OUTPUT="+filepath.Join(dir, "output"), "GITHUB_STEP_SUMMARY="+filepath.Join(dir, "summary")), more...)
	text, err := cmd.CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		code = exit.ExitCode()
	} else {
		require.NoError(t, err)
	}
	if got := read(t, filepath.Join(dir, "output")); got != fmt.Sprintf("status=%d\n", status) {
		t.Errorf("its output is %q", got)
	}
	return code, string(text), read(t, filepath.Join(dir, "summary"))
}

const pull = `{"pull_request": {"number": 7}}`

// TestActionComments: the table is commented with once, replaced by the next job, and beside comments of others.
func TestActionComments(t *testing.T) {
	f := &forge{comments: []map[string]any{{"id": 5, "body": "looks good"}}}
	server := httptest.NewServer(f)
	defer server.Close()
	code, out, summary := job(t, server.URL, pull, 4, "| vxlan | +9% |\n")
	if code != 4 || !strings.Contains(out, "::error title=Regression") || !strings.Contains(summary, "| vxlan | +9% |") {
		t.Errorf("status %d, printed %q, summary %q", code, out, summary)
	}
	if len(f.comments) != 2 || !strings.Contains(f.comments[1]["body"].(string), "| vxlan | +9% |") {
		t.Fatalf("the comments are %q", f.comments)
	}
	if code, out, _ = job(t, server.URL, pull, 0, "| vxlan | \"same\" \\ $(id) |\n"); code != 0 {
		t.Errorf("status %d: %s", code, out)
	}
	if len(f.comments) != 2 || !strings.Contains(f.comments[1]["body"].(string), "| vxlan | \"same\" \\ $(id) |") || f.comments[0]["body"] != "looks good" {
		t.Errorf("the comments are %q", f.comments)
	}
	job(t, server.URL, pull, 0, "another\n", "TITLE=Storage")
	if len(f.comments) != 3 {
		t.Errorf("a comment of another title replaced one: %q", f.comments)
	}
	long := strings.Repeat("| vxlan | +9% |\n", 10_000)
	job(t, server.URL, pull, 0, long)
	if n := len(f.comments[1]["body"].(string)); n > 65_536 {
		t.Errorf("a comment has %d bytes", n)
	}
}

// TestActionWithoutComment: what can't be written, or is not for a pull request, changes nothing of the outcome.
func TestActionWithoutComment(t *testing.T) {
	f := &forge{refuses: true}
	server := httptest.NewServer(f)
	defer server.Close()
	if code, out, summary := job(t, server.URL, pull, 0, "table\n"); code != 0 || !strings.Contains(out, "::warning") || !strings.Contains(summary, "table") || strings.Contains(out, "secret") {
		t.Errorf("refused: status %d, printed %q, summary %q", code, out, summary)
	}
	f.calls = nil
	for _, c := range [][]string{{`{"ref": "refs/heads/main"}`}, {pull, "COMMENT=false"}} {
		if code, out, _ := job(t, server.URL, c[0], 3, "", c[1:]...); code != 3 || strings.Contains(out, "::warning") || len(f.calls) > 0 {
			t.Errorf("%q: status %d, printed %q, called %q", c, code, out, f.calls)
		}
	}
	if _, _, summary := job(t, server.URL, `{}`, 3, ""); !strings.Contains(summary, "it ended with 3") {
		t.Errorf("the summary does not say what was wrong: %q", summary)
	}
}

// TestActionInputs: what the script reads is what action.yml gives it.
func TestActionInputs(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Description string }
		Runs   struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	require.NoError(t, yaml.Load([]byte(read(t, root+"/deploy/action/action.yml")), &action))
	script := read(t, root+"/deploy/action/compare.sh")
	if len(action.Runs.Steps) != 1 || !strings.HasSuffix(action.Runs.Steps[0].Run, "/compare.sh") {
		t.Fatalf("it runs %+v", action.Runs)
	}
	used := map[string]bool{}
	for name, value := range action.Runs.Steps[0].Env {
		if !strings.Contains(script, name) {
			t.Errorf("the script does not read %s", name)
		}
		used[strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")] = true
	}
	for name, about := range action.Inputs {
		if !used[name] || about.Description == "" || !strings.Contains(read(t, root+"/deploy/action/README.md"), "`"+name+"`") {
			t.Errorf("the input %s is not used, or not described", name)
		}
	}
}
