package kube

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/testbed/kube/inside"
)

func TestOptions(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		says string
	}{
		"no-image":      {Options{}, "--base-image"},
		"two-images":    {Options{Image: "a", BaseImage: "b"}, "one of --image"},
		"qos-slip":      {Options{Image: "a", QoS: "guarantee"}, `did you mean "guaranteed"`},
		"cpu":           {Options{Image: "a", CPU: "two"}, "processors of pods"},
		"no-memory":     {Options{Image: "a", Memory: "0"}, "memory of pods"},
		"negative":      {Options{Image: "a", Memory: "-1Mi"}, "memory of pods"},
		"ports":         {Options{Image: "a", Ports: 4000}, "1 to 1000"},
		"run":           {Options{Image: "a", Run: "UPPER"}, "eight digits"},
		"not-a-program": {Options{BaseImage: "a", Binary: "options_test.go"}, "options_test.go"},
		"no-program":    {Options{BaseImage: "a", Binary: "testdata/none"}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewLauncher(&Cluster{}, c.o); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got error %v, want one that says %q", err, c.says)
			}
		})
	}
	l, err := NewLauncher(&Cluster{}, Options{Image: "a"})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if o := l.options; o.Binary != self || o.Ports != defaultPorts || o.QoS != Burstable || len(o.Run) != 8 || o.Within != defaultWithin {
		t.Errorf("the defaults are %+v", o)
	}
}

// TestDynamic: a program that needs libraries is not streamed into an image that may lack them.
func TestDynamic(t *testing.T) {
	dynamic := slices.ContainsFunc([]string{"/bin/sh", "/bin/ls", "/bin/cat"}, func(path string) bool {
		err := machine.CheckStatic(path)
		return err != nil && strings.Contains(err.Error(), "CGO_ENABLED=0")
	})
	require.Need(t, "a program that is linked dynamically", dynamic)
}

// TestTrim: a program runs without its tables for debuggers.
func TestTrim(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	short := trim(whole)
	if len(short) >= len(whole) {
		t.Errorf("%d of %d bytes are left", len(short), len(whole))
	}
	path := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(path, short, 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(short)
	out, err := exec.CommandContext(t.Context(), path, inside.Verb, inside.Digest).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != hex.EncodeToString(sum[:]) {
		t.Errorf("it said %q, %v", out, err)
	}
	if text := []byte("no program"); !bytes.Equal(trim(text), text) {
		t.Error("what is no program was changed")
	}
}

func FuzzParseRunID(f *testing.F) {
	for _, s := range []string{"", "0a1b2c3d", "0A1B2C3D", "0a1b2c3d0", "0a1b2c3\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		run, err := ParseRunID(text)
		if (err == nil) != (string(run) == text && len(text) == 8) {
			t.Errorf("%q: got %q, %v", text, run, err)
		}
	})
}
