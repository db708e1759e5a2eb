package exposition_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"netdelta/experiment"
	"netdelta/report/exposition"
	"netdelta/report/words"
	"netdelta/result"
)

// quiet shows nothing.
type quiet struct{}

func (quiet) Update(experiment.Status) {}

// The metrics are of this moment, for names of this machine alone, and the port is closed at the end.
func TestServe(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := experiment.Config{Run: result.Run{Run: "small", Study: "small"}, Judge: words.NewJudge(nil), Progress: quiet{}}
	stop := exposition.Serve(&c, listener)
	ask := func(host string) (status int, text string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+exposition.Path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	c.Progress.Update(experiment.Status{Build: 3, Round: 1, Rounds: 9})
	if status, text := ask("localhost:1"); status != http.StatusOK || !strings.Contains(text, " 3") || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("status %d: %s", status, text)
	}
	if status, _ := ask("example.org"); status != http.StatusForbidden {
		t.Errorf("a name of elsewhere: status %d", status)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if status, _ := ask(""); status != 0 {
		t.Errorf("after the end: status %d", status)
	}
}
