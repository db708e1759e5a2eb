package ui

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/internal/require"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestDetectWhatIsNoTerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want Terminal
	}{
		"nothing set":    {nil, Terminal{Width: 80, Unicode: true}},
		"columns":        {map[string]string{"COLUMNS": "132"}, Terminal{Width: 132, Unicode: true}},
		"absurd columns": {map[string]string{"COLUMNS": "99999999"}, Terminal{Width: 400, Unicode: true}},
		"few columns":    {map[string]string{"COLUMNS": "-1"}, Terminal{Width: 20, Unicode: true}},
		"no number":      {map[string]string{"COLUMNS": "wide"}, Terminal{Width: 80, Unicode: true}},
		"utf-8":          {map[string]string{"LANG": "de_DE.UTF-8"}, Terminal{Width: 80, Unicode: true}},
		"C":              {map[string]string{"LANG": "C"}, Terminal{Width: 80}},
		"LC_ALL first":   {map[string]string{"LANG": "C", "LC_ALL": "C.utf8"}, Terminal{Width: 80, Unicode: true}},
	} {
		if diff := cmp.Diff(tc.want, Detect(&bytes.Buffer{}, env(tc.env))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// openTerminal is a real terminal of so many columns: the lower end of a pseudo terminal.
func openTerminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.Need(t, "a pseudo terminal", err == nil)
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	lower, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	file := os.NewFile(lower, "terminal")
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestDetectATerminal(t *testing.T) {
	file := openTerminal(t, 117)
	for name, tc := range map[string]struct {
		env  map[string]string
		want Terminal
	}{
		"colours":  {map[string]string{"TERM": "xterm", "COLUMNS": "40"}, Terminal{Interactive: true, Width: 117, Height: 24, Colour: true, Unicode: true}},
		"NO_COLOR": {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, Terminal{Interactive: true, Width: 117, Height: 24, Unicode: true}},
		"dumb":     {map[string]string{"TERM": "dumb"}, Terminal{Width: 117, Height: 24, Unicode: true}},
	} {
		if diff := cmp.Diff(tc.want, Detect(file, env(tc.env))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPaint(t *testing.T) {
	if got := (Terminal{Colour: true}).Paint(Red, "slower"); got != "\x1b[31mslower\x1b[0m" {
		t.Errorf("red is %q", got)
	}
	for _, got := range []string{(Terminal{}).Paint(Red, "x"), (Terminal{Colour: true}).Paint(Plain, "x")} {
		if got != "x" {
			t.Errorf("plain is %q", got)
		}
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"vxlan":              "vxlan",
		"µs, 網路":             "µs, 網路",
		"\x1b[31mred\x1b[0m": "?[31mred?[0m",
		"a\nb\tc\rd":         "a b c d",
		"bell\a\x00\x7f":     "bell???",
		"c1 \u009b31m":       "c1 ?31m",
		"bidi \u202etxt":     "bidi ?txt",
		"not utf-8 \xff\xfe": "not utf-8 ?",
		"line\u2028break":    "line?break",
		"a\ufe0fb\u3164c":    "a?b?c",
	} {
		if got := Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
	}
	property.Check(t, func(t *rapid.T) {
		got := Clean(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\n\r\u009b") || got != Clean(got) {
			t.Errorf("%q is not clean", got)
		}
		for _, r := range (Terminal{}).Text(got) {
			if r >= utf8.RuneSelf {
				t.Errorf("%q is not ASCII", got)
			}
		}
	})
}

// All characters that turn the direction of writing or have no width are taken out.
func TestUnseen(t *testing.T) {
	for _, span := range [][2]rune{{0, 0x1f}, {0x7f, 0x9f}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2064}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0020, 0xe007f}} {
		for r := span[0]; r <= span[1]; r++ {
			if !Unseen(r) || strings.ContainsRune(Clean(string(r)), r) && r != '\n' {
				t.Errorf("%U is kept", r)
			}
		}
	}
	for _, r := range " aµ±·—網é" {
		if Unseen(r) {
			t.Errorf("%q is taken out", r)
		}
	}
}

func TestASCII(t *testing.T) {
	if got := ASCII("9.4 µs · ±2% — 網…"); got != "9.4 us - +-2% - ?~" {
		t.Errorf("got %q", got)
	}
}

func TestShortenAndWrapKeepTheWidth(t *testing.T) {
	for _, tc := range []struct {
		text    string
		columns int
		want    string
	}{
		{"vxlan", 5, "vxlan"}, {"vxlan-routed", 6, "vxlan…"}, {"vxlan", 3, "vxl"}, {"網路網路", 5, "網路…"}, {"x", 0, ""},
		{"cni:docs/cni/ptp.conflist", 16, "cni:…tp.conflist"}, {"cni:docs/網.conflist", 15, "cni:….conflist"}, {"cni:docs", 4, "cni…"},
	} {
		if got := Shorten(tc.text, tc.columns); got != tc.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", tc.text, tc.columns, got, tc.want)
		}
	}
	if diff := cmp.Diff([]string{"a bb", "ccccccc", "d"}, Wrap(" a  bb ccccccc d", 5)); diff != "" {
		t.Errorf("wrapped (-want +got):\n%s", diff)
	}
	property.Check(t, func(t *rapid.T) {
		text, columns := Clean(rapid.String().Draw(t, "text")), rapid.IntRange(0, 30).Draw(t, "columns")
		if got := Columns(Shorten(text, columns)); got > columns {
			t.Errorf("%d columns, want at most %d", got, columns)
		}
		if got := strings.Join(Wrap(text, columns), " "); got != strings.Join(strings.Fields(text), " ") {
			t.Errorf("wrapping changed %q to %q", text, got)
		}
	})
}

// shown is a progress on a buffer, with a clock that stands still until it is moved.
func shown(terminal Terminal) (p *Progress, out *bytes.Buffer, pass func(time.Duration)) {
	out = &bytes.Buffer{}
	now := time.Unix(1000, 0)
	p = NewProgress(out, terminal)
	p.now = func() time.Time { return now }
	return p, out, func(d time.Duration) { now = now.Add(d) }
}

func TestProgressInLines(t *testing.T) {
	p, out, pass := shown(Terminal{Width: 80})
	for i := range 1000 { // ten seconds
		p.Update(Step{Done: float64(i) / 1000, Left: time.Duration(1000-i) * 10 * time.Millisecond, Text: "build 1\x1b"})
		pass(10 * time.Millisecond)
	}
	p.Note("vxlan failed")
	p.Close()
	p.Update(Step{Done: 1})
	want := "  0%   0:10 left - build 1?\n 50%   0:05 left - build 1?\nvxlan failed\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	p, out, pass := shown(Terminal{Interactive: true, Width: 60, Unicode: true})
	for range 100 { // one second
		p.Update(Step{Done: 0.5, Left: 75 * time.Second, Text: "build 3 of 12, 9 networks and much more to be told"})
		pass(10 * time.Millisecond)
	}
	if n := strings.Count(out.String(), "\r"); n != 4 {
		t.Errorf("drawn %d times in a second, want 4", n)
	}
	bar := "\r\x1b[2K━━━━━━━────────  50%   1:15 left · build 3 of 12, 9 networ…"
	if !strings.HasPrefix(out.String(), bar+"\r") {
		t.Errorf("bar %q\nwant %q", strings.SplitAfter(out.String(), "…")[0], bar)
	}
	out.Reset()
	p.Note("vxlan failed")
	p.Update(Step{Done: 2, Left: -1})
	p.Close()
	p.Close()
	want := "\r\x1b[2Kvxlan failed\n\r\x1b[2K" + strings.Repeat("━", 40) + " 100%  --:-- left\r\x1b[2K" // the bar takes what the text leaves
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("after a note (-want +got):\n%s", diff)
	}
}

// screen carries out what a progress writes, on a terminal that is high enough: it returns the lines that stand there at the end.
func screen(t *testing.T, written string) []string {
	t.Helper()
	lines, at := []string{""}, 0
	for rest := written; rest != ""; {
		step := rest[:1]
		var up int
		switch {
		case strings.HasPrefix(rest, "\x1b[2K"):
			step, lines[at] = rest[:4], ""
		case strings.HasPrefix(rest, "\x1b[J"):
			step, lines = rest[:3], append(lines[:at], "")
		case strings.HasPrefix(rest, "\x1b["):
			if n, err := fmt.Sscanf(rest, "\x1b[%dA", &up); n != 1 || err != nil || up > at {
				t.Fatalf("an unknown step, or one above the screen: %.20q", rest)
			}
			step, at = rest[:strings.Index(rest, "A")+1], at-up
		case step == "\r":
		case step == "\n":
			if at++; at == len(lines) {
				lines = append(lines, "")
			}
		default:
			lines[at] += step
		}
		rest = rest[len(step):]
	}
	return lines
}

// A block is drawn again in its place, notes stay above it, and nothing of it is left at the end.
func TestBlockOnATerminal(t *testing.T) {
	p, out, pass := shown(Terminal{Interactive: true, Width: 60, Height: 6})
	drawn := 0
	step := func(lines ...string) Step {
		return Step{Done: 0.5, Left: time.Minute, Below: func(_ Terminal, most int) []string {
			if drawn++; most != 4 {
				t.Errorf("room for %d lines on 6, want 4", most)
			}
			return lines
		}}
	}
	for range 8 {
		p.Update(step("a", "bb", "ccc"))
		pass(100 * time.Millisecond)
	}
	if drawn != 3 {
		t.Errorf("drawn %d times in 0.8 s, want 3", drawn)
	}
	if lines := screen(t, out.String()); len(lines) != 4 || lines[1] != "a" || lines[3] != "ccc" || !strings.Contains(lines[0], "1:00 left") {
		t.Errorf("the screen has %q", lines)
	}
	p.Tell("the ranking") // which the block has
	p.Note("vxlan failed")
	p.Update(step("a"))
	if lines := screen(t, out.String()); len(lines) != 3 || lines[0] != "vxlan failed" || lines[2] != "a" {
		t.Errorf("after a note and with fewer lines the screen has %q", lines)
	}
	p.Close()
	if lines := screen(t, out.String()); len(lines) != 2 || lines[0] != "vxlan failed" || lines[1] != "" {
		t.Errorf("at the end the screen has %q", lines)
	}
}

func TestProgressFitsAnyTerminal(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		terminal := Terminal{Interactive: true, Width: rapid.IntRange(20, 200).Draw(t, "width"), Unicode: rapid.Bool().Draw(t, "unicode")}
		line := terminal.bar(Step{Done: rapid.Float64().Draw(t, "done"), Left: time.Hour, Text: rapid.String().Draw(t, "text")})
		if got := Columns(line); got >= terminal.Width {
			t.Errorf("%d columns of %d: %q", got, terminal.Width, line)
		}
	})
}

func TestNoProgress(*testing.T) {
	var p *Progress
	p.Update(Step{})
	p.Note("x")
	p.Close()
}

// A command that is broken into lines is the same command to a shell, and fits.
func TestWrappedCommandIsTheSame(t *testing.T) {
	for _, command := range []string{
		"netdelta run --resume runs/a --time-budget 3m", `printf '%s|' "a b  c" 'd  e' f\ g | tr a b`, "printf x   # in a namespace that admits it",
		"# vxlan is used by Docker overlay and the OpenStack Linux bridge agent",
	} {
		for columns := 20; columns < 90; columns += 7 {
			lines := WrapCommand(command, columns)
			for i, line := range lines {
				if Columns(line) > columns && strings.Count(strings.TrimSpace(line), " ") > 1 && !strings.ContainsAny(line, "#'\"") {
					t.Errorf("%d columns: %q is wider, and has a blank", columns, line)
				}
				if i < len(lines)-1 && !strings.HasPrefix(command, "#") && !strings.HasSuffix(line, ` \`) {
					t.Errorf("%d columns: %q is not joined with the next", columns, line)
				}
			}
			if strings.HasPrefix(command, "printf") {
				want, err := exec.Command("sh", "-c", command).Output()
				got, err2 := exec.Command("sh", "-c", strings.Join(lines, "\n")).Output()
				if err != nil || err2 != nil || !bytes.Equal(got, want) {
					t.Errorf("%d columns: %q, want %q (%v, %v)", columns, got, want, err, err2)
				}
			}
		}
	}
}
