package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
)

// atCluster are the arguments of a run on the cluster of a kubeconfig.
func atCluster(kubeconfig string) []string {
	return []string{"run", "--testbed", "kubernetes", "--base-image", "x", "--kubeconfig", kubeconfig, "--out", "run"}
}

// kubeconfigOf writes a kubeconfig with one cluster into the fault's folder.
func (c *chaos) kubeconfigOf(name, server, user string) string {
	path := filepath.Join(c.dir, name)
	write(c.T, path, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {%s}}]}`, server, user))
	return path
}

// endsSoon calls the program, which has to fail at once, and names the fault.
func (c *chaos) endsSoon(words []string, args ...string) {
	c.Helper()
	lacked, began := lacking(c.T), time.Now()
	e := finish(c.T, command(c.T, c.dir, args...)).want(c.T, statusFailed).says(c.T, words...)
	c.ended(began)
	if lacked = lacking(c.T) - lacked; c.took-lacked > 2*endsWithin { // it starts, too
		c.Errorf("%v took %v, in %v of which a processor was lacking", args, c.took, lacked)
	}
	c.said = strings.TrimSpace(e.stderr)
}

// A kubeconfig, or a file that it names, is not read to an end that does not come.
func endlessKubeconfig(c *chaos) {
	pipe := filepath.Join(c.dir, "pipe")
	require.NoError(c.T, unix.Mkfifo(pipe, 0o600))
	c.endsSoon([]string{"/dev/zero: it is a device", "give a regular file"}, atCluster("/dev/zero")...)
	c.endsSoon([]string{pipe + ": it is a pipe"}, atCluster(pipe)...)
	c.endsSoon([]string{"the token of the context", pipe + ": it is a pipe"}, atCluster(c.kubeconfigOf("tokens", "https://127.0.0.1:1", "tokenFile: "+pipe))...)
	_, c.said, _ = strings.Cut(c.said, pipe+": ")
}

// An API server's answer is not read to an end that does not come, and a signal ends the wait for one that comes bit by bit.
func endlessServer(c *chaos) {
	t, called := c.T, make(chan struct{}, 100)
	answers := func(size int, pause time.Duration) string {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for junk := []byte(strings.Repeat(" ", size)); ; time.Sleep(pause) {
				if _, err := w.Write(junk); err != nil || http.NewResponseController(w).Flush() != nil {
					return
				}
				select {
				case called <- struct{}{}:
				default:
				}
			}
		}))
		t.Cleanup(web.Close)
		return web.URL
	}
	interrupting("doctor --testbed kubernetes").signalled(t, c.dir, []string{"KUBECONFIG=" + c.kubeconfigOf("slow", answers(1, time.Millisecond), "")}, func(started) bool { return len(called) > 0 })
	began := time.Now()
	e := finish(t, command(t, c.dir, atCluster(c.kubeconfigOf("fast", answers(1<<20, 0), ""))...)).want(t, statusFailed).says(t, "its answer has more than 128MiB", "is it the right server?")
	c.ended(began)
	_, c.said, _ = strings.Cut(strings.TrimSpace(e.stderr), "its ")
}

// asServer has the program reach a server that this machine plays: what ssh would run there is run by a shell within a mount namespace, with a
// /tmp and a /run of its own, after a script. What that writes to descriptor 3 is returned.
func (c *chaos) asServer(script string, args ...string) (e ending, said string) {
	c.Helper()
	require.Tool(c.T, "unshare")
	bin, report := filepath.Join(c.dir, "bin"), filepath.Join(c.dir, "said")
	require.NoError(c.T, os.MkdirAll(bin, 0o755))
	ssh := fmt.Sprintf(`#!/bin/sh
[ -n "$apart" ] || apart=1 exec unshare -m "$0" "$@"
exec 3>>'%s'
mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /run || exit 77
for remote; do :; done
%s
`, report, script)
	require.NoError(c.T, os.WriteFile(filepath.Join(bin, "ssh"), []byte(ssh), 0o755))
	cmd := command(c.T, c.dir, args...)
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	began := time.Now()
	e = finish(c.T, cmd)
	c.ended(began)
	return e, read(c.T, report)
}

// A server whose login prints without end, with and without ends of lines, is given up.
func endlessLogin(c *chaos) {
	for _, prints := range []string{"exec yes", "exec cat /dev/zero"} {
		e, _ := c.asServer(prints, "run", "--testbed", "ssh", "--nodes", "ssh:root@a,ssh:root@b", "--out", "run")
		e.want(c.T, statusFailed).says(c.T, "set up root@a", "set up root@b", "there is no end to what it says at a login")
		if c.took > 10*endsWithin { // a server that ends in good order is waited for, for half a minute
			c.Errorf("%s: it took %v", prints, c.took)
		}
	}
	c.said = "there is no end to what it says at a login"
}

// What another user of a server has put where a supervisor's folder could be has root write nothing there.
func plantedFolder(c *chaos) {
	const left, planted = "/tmp/netdelta-00112233445566aa", "/tmp/netdelta-00112233445566bb"
	e, said := c.asServer(`
echo precious >/run/precious
plant() { mkdir -m 700 $1; printf 00000000-1-1-1 >$1/owner; }
plant `+left+`
plant `+planted+`
printf '[{"name":"eth9/0","made":"/run/precious"}]' >`+planted+`/card.json
chown -R 65534:65534 `+planted+`
sh -c "$remote"
status=$?
cat /run/precious >&3
ls /tmp >&3
exit $status`, "cleanup", "--nodes", "ssh:root@a")
	e.want(c.T, statusDone).shows(c.T, "removed directory "+left)
	if want := "precious\n" + filepath.Base(planted) + "\n"; said != want {
		c.Errorf("the server has %q, want %q", said, want)
	}
	c.said = "what another user has planted is not touched"
}
