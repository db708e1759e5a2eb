package image_test

import (
	"archive/tar"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"netdelta/extras/cluster/image"
	"netdelta/internal/require"
)

// The archive holds an image that has a shell and a folder that everybody may write to.
func TestWrite(t *testing.T) {
	busybox := require.Tool(t, "busybox")
	file := filepath.Join(t.TempDir(), "base.tar")
	if err := image.Write(file, busybox); err != nil {
		t.Fatal(err)
	}
	i, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	content := mutate.Extract(i)
	defer content.Close()
	found := map[string]*tar.Header{}
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Clean(h.Name)] = h
	}
	for _, name := range []string{"bin/busybox", "bin/sh", "bin/cat", "bin/chmod", "bin/sleep", "bin/sha256sum"} {
		if found[name] == nil {
			t.Errorf("the image has no %s", name)
		}
	}
	if tmp := found["tmp"]; tmp == nil || tmp.Mode&0o1777 != 0o1777 {
		t.Errorf("not everybody may write to /tmp: %v", tmp)
	}
}
