package browsertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/chromedp/chromedp"

	"netdelta/internal/require"
)

// The version of axe-core, and the sum that the npm registry publishes for it.
const (
	axeVersion = "4.11.0"
	axeSum     = "ilYanEU8vxxBexpJd8cWM4ElSQq4QctCLKih0TSfjIfCQTeyH/6zVrmIJfLPrKTKJRbiG+cfnZbQIjAlJmF1jQ=="
)

// Accessible fails for what axe-core, which npm fetches once a machine, finds against WCAG 2.1 A and AA in the page as it is drawn now.
func (b *Browser) Accessible() {
	b.t.Helper()
	Ask[bool](b, b.axeScript()+`; true`)
	found := Ask[[]string](b, `axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then((r) =>
		r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + ': ' + v.help + ': ' + n.target + ' ' + (n.any[0] || n.all[0] || n.none[0] || {message: ''}).message)))`,
		chromedp.EvalAwaitPromise)
	for _, f := range found {
		b.t.Errorf("axe-core: %s", f)
	}
}

// axeScript is the library's text.
func (b *Browser) axeScript() string {
	b.t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		b.t.Fatalf("find the folder of cached files: %v", err)
	}
	dir := filepath.Join(cache, "netdelta", "tools")
	path := filepath.Join(dir, "axe-core-"+axeVersion+".tgz")
	packed, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		packed, err = fetchAxe(b, dir, path)
	}
	if err != nil {
		b.t.Fatalf("read axe-core: %v", err)
	}
	if sum := sha512.Sum512(packed); base64.StdEncoding.EncodeToString(sum[:]) != axeSum {
		b.t.Fatalf("%s is not axe-core %s: its sum differs; remove it and try again", path, axeVersion)
	}
	text, err := member(packed, "package/axe.min.js")
	if err != nil {
		b.t.Fatalf("unpack %s: %v", path, err)
	}
	return text
}

// fetchAxe has npm write the package's archive.
func fetchAxe(b *Browser, dir, path string) ([]byte, error) {
	npm := require.Tool(b.t, "npm")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if out, err := exec.Command(npm, "pack", "--silent", "--pack-destination", dir, "axe-core@"+axeVersion).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack axe-core@%s: %w: %s", axeVersion, err, out)
	}
	return os.ReadFile(path)
}

// member is the text of a file in a packed archive.
func member(packed []byte, name string) (string, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	for archive := tar.NewReader(unpacked); ; {
		head, err := archive.Next()
		if err != nil {
			return "", fmt.Errorf("find %s: %w", name, err)
		}
		if head.Name == name {
			text, err := io.ReadAll(archive)
			return string(text), err
		}
	}
}
