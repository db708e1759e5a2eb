package change

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/internal/tail"
)

// What is printed to be typed is read by a shell as the same words.
func TestStepsAreReadByShells(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[ -~]{0,12}`), 1, 4).Draw(t, "words")
		line := step{Command: append([]string{"printf", `%s\n`}, words...)}.String()
		out, err := exec.Command("sh", "-c", line).Output()
		if err != nil || string(out) != strings.Join(words, "\n")+"\n" {
			t.Fatalf("%s: %q, %v", line, out, err)
		}
	})
}

func TestOnOneLine(t *testing.T) {
	said := tail.New(keptTail)
	for range 1000 {
		if n, err := said.Write([]byte("line\r\n")); n != 6 || err != nil {
			t.Fatal(n, err)
		}
	}
	if s := onOneLine(said.String()); len(s) > keptTail || !strings.HasSuffix(s, "line; line") || strings.ContainsAny(s, "\r\n") {
		t.Errorf("%d bytes: %q", len(s), s)
	}
	if got, want := onOneLine("a line\r\nanother\n\xffodd\n"), "a line; another; ?odd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzParseObjects(f *testing.F) {
	for _, s := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[]}", "---\n---\n", "- a", "a: &x [*x]",
		"apiVersion: v1\nkind: PodList\nitems: []\n", "apiVersion: 5\nkind: [a]\n", "apiVersion: v1\nkind: Pod\nmetadata: 5\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseObjects("f", data)
		if (err == nil) != (len(all) > 0) {
			t.Fatalf("%d objects and %v", len(all), err)
		}
		for _, o := range all {
			if o.GetKind() == "" || o.GetName() == "" || o.GetAPIVersion() == "" {
				t.Fatalf("an object without a name or kind: %v", o.Object)
			}
		}
	})
}
