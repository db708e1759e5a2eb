package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The test binary is itself a Go program whose parts are known.
func TestSBOM(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(program, out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two documents of one program differ")
	}
	var d document
	if err := json.Unmarshal(first.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Format != "CycloneDX" || d.Metadata.Component.Name != "netdelta" {
		t.Errorf("the document is of format %q and describes %q", d.Format, d.Metadata.Component.Name)
	}
	if d.Components[0].Name != "std" || "go"+d.Components[0].Version != runtime.Version() {
		t.Errorf("the first part is %s %s, want the standard library of %s", d.Components[0].Name, d.Components[0].Version, runtime.Version())
	}
	if got := len(d.Dependencies[0].DependsOn); got != len(d.Components) {
		t.Errorf("the program depends on %d parts of %d", got, len(d.Components))
	}
}

func TestSBOMOfNoProgram(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(text, new(bytes.Buffer)); err == nil {
		t.Error("a text file is described as a program")
	}
}

func TestPURL(t *testing.T) {
	for _, c := range []struct{ module, version, want string }{
		{"example.org/a", "v1.2.3", "pkg:golang/example.org/a@v1.2.3"},
		{"example.org/a", "v1.2.3+dirty", "pkg:golang/example.org/a@v1.2.3%2Bdirty"},
		{"netdelta", "(devel)", "pkg:golang/netdelta"},
	} {
		if got := purl(c.module, c.version); got != c.want {
			t.Errorf("purl(%q, %q) = %q, want %q", c.module, c.version, got, c.want)
		}
	}
}
