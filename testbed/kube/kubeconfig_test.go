package kube

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
)

// promptly is how soon something is given up, on a machine that others keep busy. What is waited for instead never comes.
const promptly = 5 * time.Second

// config is a kubeconfig with one cluster and one user.
func config(server, cluster, user string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q%s}}], users: [{name: u, user: {%s}}]}`, server, cluster, user)
}

// connectBy connects by a kubeconfig with this text.
func connectBy(t *testing.T, text string) (*Cluster, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Connect(Config{Kubeconfig: path})
}

// TestKubeconfigWithoutEnd: a kubeconfig that is no file of a kubeconfig's size, and one that names such a file, is refused at once.
func TestKubeconfigWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	pipe, sparse := filepath.Join(dir, "pipe"), filepath.Join(dir, "sparse")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 1<<40))
	for path, says := range map[string]string{pipe: "it is a pipe", "/dev/zero": "it is a device", sparse: "has at most", dir: "it is a folder"} {
		files := map[string]string{"itself": path}
		for name, c := range map[string]struct{ cluster, user string }{
			"authority":   {", certificate-authority: " + path, ""},
			"certificate": {"", "client-key-data: eA==, client-certificate: " + path},
			"key":         {"", "client-certificate-data: eA==, client-key: " + path},
			"token":       {"", "tokenFile: " + path},
			"both":        {", certificate-authority-data: eA==, certificate-authority: " + path, ""},
		} {
			files[name] = filepath.Join(t.TempDir(), "config")
			require.NoError(t, os.WriteFile(files[name], []byte(config("https://127.0.0.1:1", c.cluster, c.user)), 0o600))
		}
		for name, kubeconfig := range files {
			failed := make(chan error, 1)
			go func() {
				_, err := Connect(Config{Kubeconfig: kubeconfig})
				failed <- err
			}()
			want := says
			if name == "both" {
				want = "remove one"
			}
			select {
			case err := <-failed:
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s %s: %v", name, path, err)
				}
			case <-time.After(promptly):
				t.Fatalf("%s %s: it is waited for", name, path)
			}
		}
	}
}

// TestKubeconfigs: of several kubeconfigs the first that has a name has it, and one that is missing is none.
func TestKubeconfigs(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	require.NoError(t, os.WriteFile(first, []byte(strings.Replace(config("http://first", "", ""), "current-context: c, ", "", 1)), 0o600))
	require.NoError(t, os.WriteFile(second, []byte(strings.ReplaceAll(config("http://second", "", ""), "clusters: [", "clusters: [{name: d, cluster: {server: http://other}}, ")), 0o600))
	t.Setenv("KUBECONFIG", strings.Join([]string{filepath.Join(dir, "missing"), first, second}, ":"))
	c, err := Connect(Config{})
	require.NoError(t, err)
	if c.REST.Host != "http://first" || c.Name != "c" {
		t.Errorf("the cluster is %s at %s", c.Name, c.REST.Host)
	}
	if name, err := CurrentContext(""); name != "c" || err != nil {
		t.Errorf("the current context is %q, %v", name, err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "missing"))
	if _, err := Connect(Config{}); !errors.Is(err, ErrNoCluster) {
		t.Errorf("a kubeconfig that is not there: %v", err)
	}
}

// secured is an API server that knows a token, and a kubeconfig for it whose user is written so.
func secured(t *testing.T, token func() string) func(user string) *Cluster {
	t.Helper()
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token() {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = fmt.Fprint(w, `{"gitVersion": "v1.34.4"}`)
	}))
	t.Cleanup(web.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	return func(user string) *Cluster {
		t.Helper()
		c, err := connectBy(t, config(web.URL, ", certificate-authority-data: "+base64.StdEncoding.EncodeToString(authority), user))
		require.NoError(t, err)
		return c
	}
}

// TestTokenFile: the token in a file is sent, and the one that has come in its place.
func TestTokenFile(t *testing.T) {
	token := "old"
	at := secured(t, func() string { return token })
	path := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	c := at("tokenFile: " + path)
	if said, err := c.Meet(t.Context()); said != "v1.34.4" {
		t.Errorf("with a token: %q, %v", said, err)
	}
	token = "new"
	require.NoError(t, os.WriteFile(path, []byte("new\n"), 0o600))
	_, _ = c.Meet(t.Context()) // which refuses the old one, and then the file is read again
	if said, err := c.Meet(t.Context()); said != "v1.34.4" {
		t.Errorf("with another token: %q, %v", said, err)
	}
}

// TestPlugin: a plugin's token is sent; one that prints without end, or never ends, is ended.
func TestPlugin(t *testing.T) {
	at := secured(t, func() string { return "secret" })
	plugin := func(script string) *Cluster {
		return at(fmt.Sprintf(`exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, %q]}`, script))
	}
	said, err := plugin(`echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "secret"}}'`).Meet(t.Context())
	if said != "v1.34.4" {
		t.Errorf("a plugin with a token: %q, %v", said, err)
	}
	for name, script := range map[string]string{"prints without end": "exec yes", "fails": "exit 3", "prints no credentials": "echo hello"} {
		if _, err := plugin(script).Meet(t.Context()); err == nil || !strings.Contains(err.Error(), "getting credentials") {
			t.Errorf("a plugin that %s: %v", name, err)
		}
	}
	began := filepath.Join(t.TempDir(), "began")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	hangs := plugin("echo $$ >" + began + "; exec sleep 600")
	go func() {
		_, err := hangs.Meet(ctx)
		ended <- err
	}()
	var pid int
	for pid == 0 {
		text, _ := os.ReadFile(began) // it may not be there yet
		_, _ = fmt.Sscan(string(text), &pid)
		time.Sleep(time.Millisecond)
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a plugin that hangs: %v", err)
		}
	case <-time.After(promptly):
		t.Error("a plugin that hangs is waited for")
	}
	require.NoError(t, unix.Kill(pid, unix.SIGKILL)) // it would end with this process
}

// TestAnswersWithoutEnd: an API server whose answers do not end is given up.
func TestAnswersWithoutEnd(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for junk := make([]byte, 64<<10); ; {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(web.Close)
	c, err := connectBy(t, config(web.URL, "", ""))
	require.NoError(t, err)
	if _, err := c.Meet(t.Context()); err == nil || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "is it the right server?") {
		t.Errorf("an answer without end: %v", err)
	}
}

// FuzzParseKubeconfig: a text that is no kubeconfig is none at all, and all files that one names are at places that are known.
func FuzzParseKubeconfig(f *testing.F) {
	f.Add(config("https://127.0.0.1:6443", ", certificate-authority: ca.crt", "client-certificate: a, client-key: /b"))
	f.Add(config("https://127.0.0.1:6443", ", insecure-skip-tls-verify: true", "tokenFile: ../token"))
	f.Add(config("http://a", "", "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: ./plugin, args: [-c, x]}"))
	f.Add("{clusters: [{name: c}, {name: c}, null], users: [{}], contexts: [null]}")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseKubeconfig("/somewhere/config", []byte(text))
		if err != nil {
			if c != nil {
				t.Fatalf("%v, and a kubeconfig", err)
			}
			return
		}
		for _, one := range c.AuthInfos {
			for _, path := range []string{one.TokenFile, one.ClientCertificate, one.ClientKey} {
				if path != "" && !filepath.IsAbs(path) {
					t.Errorf("a file %q", path)
				}
			}
		}
	})
}
