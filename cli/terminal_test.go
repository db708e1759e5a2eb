package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
)

// onTerminal runs a call with its standard output on a terminal and gives what it printed there.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.Need(t, "pseudo terminals (/dev/ptmx)", err == nil)
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.Need(t, "pseudo terminals (/dev/pts)", err == nil)
	var complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = end, &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	// The kernel says EIO when the last one who had the terminal open has gone.
	if _, err := text.ReadFrom(master); err != nil && !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	return text.String()
}

// What is listed fits a terminal of 100 columns: the networks as a table, the workloads behind their names.
func TestListFitsTerminal(t *testing.T) {
	text := onTerminal(t, command(t, t.TempDir(), "list"))
	for line := range strings.SplitSeq(text, "\r\n") {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"  routed        here         Calico without", "  tcp-rr      requests and"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the list:\n%s", want, text)
		}
	}
}
