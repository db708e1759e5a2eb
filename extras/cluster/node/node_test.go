package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/netns"
	"netdelta/internal/require"
)

const verb = "be-a-node"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == verb {
		if err := Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leak.Main(m))
}

// TestNode writes files of a node, runs commands in it, keeps a service alive, and reaps what is left to process 1.
func TestNode(t *testing.T) {
	require.Namespaces(t)
	logs, root := t.TempDir(), t.TempDir()
	space, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	n, err := Start(space, "/proc/self/exe", []string{verb}, os.Stderr, Spec{
		Name: "w1", Root: root, Binds: []Bind{{From: logs, To: LogFolder}}, Links: map[string]string{"/run/linked": "/etc/hostname"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.end(); err != nil {
			t.Error(err)
		}
	}()
	if err := n.Write(File{Path: "/run/written", Mode: 0o600, Content: []byte("text")}); err != nil {
		t.Fatal(err)
	}
	if out, err := n.Run("sh", "-c", "cat /run/written; readlink /run/linked; hostname; echo $$ >&2"); err != nil || !strings.HasPrefix(out, "text/etc/hostname\nw1\n") {
		t.Errorf("the node says %q, %v", out, err)
	}
	if out, err := n.Run("sh", "-c", "echo said; exit 3"); err == nil || !strings.Contains(err.Error(), "exit status 3: said") {
		t.Errorf("a command that fails gives %q, %v", out, err)
	}
	if _, err := n.Run("no-such-program"); err == nil {
		t.Error("a program that is none was run")
	}
	if err := n.StartService(Service{Name: "counts", Args: []string{"sh", "-c", "echo began $WORD; sleep 0.1"}, Env: []string{"WORD=well"}}); err != nil {
		t.Fatal(err)
	}
	if err := n.StartService(Service{Name: "counts", Args: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("a second start gives %v", err)
	}
	require.NoError(t, require.Await(20*time.Second, "the service has ended and begun again", func() error {
		text, err := os.ReadFile(filepath.Join(logs, "counts.log"))
		if err == nil && (strings.Count(string(text), "began well\n") < 2 || !strings.Contains(string(text), "--- counts ended: exit status 0\n")) {
			err = fmt.Errorf("its log is %q", text)
		}
		return err
	}))
	if err := n.StopService("counts", true); err != nil {
		t.Error(err)
	}
	if err := n.StopService("counts", false); err == nil {
		t.Error("a service was stopped twice")
	}
	if err := n.StartService(Service{Name: "waits", Args: []string{"sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	if err := n.EndServices("counts", "waits", "never"); err != nil {
		t.Error(err)
	}
	if err := n.StopService("waits", true); err == nil {
		t.Error("a service that was ended still ran")
	}
	// The inner shell is left to process 1, which must not keep it as a zombie.
	if out, err := n.Run("sh", "-c", "(sh -c 'sleep 0.1' &) ; sleep 1; ps -A -o stat= | grep -c Z"); err == nil || !strings.Contains(err.Error(), ": 0") {
		t.Errorf("zombies: %q, %v", out, err)
	}
}
