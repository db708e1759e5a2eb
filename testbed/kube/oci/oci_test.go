package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"netdelta/internal/leak"
	"netdelta/internal/require"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// program builds a small one. Linked says whether it needs libraries.
func program(t *testing.T, linked bool) string {
	t.Helper()
	dir := t.TempDir()
	source := "package main\n\nfunc main() { println(\"ran\") }\n"
	env := append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux") // with the flags of the tests, to share what is compiled
	if linked {
		require.Tool(t, "gcc")
		source = "package main\n\nimport \"C\"\n\nfunc main() { println(\"ran\") }\n"
		env = append(env, "CGO_ENABLED=1")
	}
	for file, text := range map[string]string{"main.go": source, "go.mod": "module example\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir, build.Env = dir, env
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func imageOf(t *testing.T, path string) v1.Image {
	t.Helper()
	p, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	p.Version, p.Revision = "v1.2.3", "0123abcd"
	image, err := Image(p)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func reference(t *testing.T, text string) Reference {
	t.Helper()
	ref, err := ParseReference(text, false)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// archiveOf writes an image's archive into a file.
func archiveOf(t *testing.T, image v1.Image, ref string) string {
	t.Helper()
	return written(t, func(w io.Writer) error { return WriteArchive(w, image, reference(t, ref)) })
}

// written is a file of what write writes.
func written(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var buffer bytes.Buffer
	if err := write(&buffer); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, buffer.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestImage(t *testing.T) {
	image := imageOf(t, program(t, false))
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if len(c.Entrypoint) != 1 || c.Entrypoint[0] != "/netdelta" || c.User != "65532:65532" || config.OS != "linux" || len(config.RootFS.DiffIDs) != 1 {
		t.Errorf("the image runs %v as %s on %s, of %d layers", c.Entrypoint, c.User, config.OS, len(config.RootFS.DiffIDs))
	}
	if c.Labels["org.opencontainers.image.version"] != "v1.2.3" || c.Labels["org.opencontainers.image.revision"] != "0123abcd" {
		t.Errorf("the labels are %v", c.Labels)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Annotations["org.opencontainers.image.version"] != "v1.2.3" {
		t.Errorf("the annotations are %v", manifest.Annotations)
	}
}

// The layer holds the program as it is, and what it needs to run as the user nobody.
func TestLayer(t *testing.T) {
	path := program(t, false)
	layers, err := imageOf(t, path).Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for archive := tar.NewReader(content); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = fmt.Sprintf("%c %o %d", h.Typeflag, h.Mode, h.Uid)
		if got, err := io.ReadAll(archive); h.Name == "netdelta" && (err != nil || !bytes.Equal(got, want)) {
			t.Errorf("the program differs in the layer: %v", err)
		}
	}
	if found["netdelta"] != "0 555 0" || found["tmp/"] != "5 1777 0" || len(found) != 2 {
		t.Errorf("the layer holds %v", found)
	}
}

// The same program is the same archive, wherever it lies and however new its file is.
func TestReproducible(t *testing.T) {
	path := program(t, false)
	elsewhere := filepath.Join(t.TempDir(), "copy")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(elsewhere, data, 0o700); err != nil {
		t.Fatal(err)
	}
	var archives [2][]byte
	for i, p := range []string{path, elsewhere} {
		if archives[i], err = os.ReadFile(archiveOf(t, imageOf(t, p), "netdelta:1")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("one program became two archives")
	}
}

// Both kinds of readers find the image in the archive: readers of docker's archives, and of OCI layouts.
func TestArchive(t *testing.T) {
	image := imageOf(t, program(t, false))
	want, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	path := archiveOf(t, image, "localhost/netdelta:1")
	tag, err := name.NewTag("localhost/netdelta:1")
	if err != nil {
		t.Fatal(err)
	}
	docker, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(docker); err != nil {
		t.Error(err)
	}
	ours, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err := docker.ConfigName(); err != nil || theirs != ours {
		t.Errorf("docker's readers find %v, want %v: %v", theirs, ours, err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "-xf", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if oci, err := index.Image(want); err != nil {
		t.Errorf("readers of OCI layouts don't find %v: %v", want, err)
	} else if err := validate.Image(oci); err != nil {
		t.Error(err)
	}
}

// A program that needs libraries would not start in an image of itself alone.
func TestDynamicIsRefused(t *testing.T) {
	_, err := Inspect(program(t, true))
	if !errors.Is(err, ErrDynamic) || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("the error is %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(path); err == nil || !strings.Contains(err.Error(), "a program for Linux") {
		t.Errorf("the error is %v", err)
	}
}

// A program that is cut short while it is packed must not become an image.
func TestShorterMeanwhile(t *testing.T) {
	p, err := Inspect(program(t, false))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(p.Path, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	r, err := unpacked(p, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the error is %v", err)
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // the user's own credentials are not the test's
	image := imageOf(t, program(t, false))
	ref := reference(t, strings.TrimPrefix(server.URL, "http://")+"/tools/netdelta:1")
	pushed, err := Push(t.Context(), image, ref)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := name.NewDigest(pushed)
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(got); err != nil {
		t.Error(err)
	}
	server.Close()
	if _, err := Push(t.Context(), image, ref); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("a push to nowhere: %v", err)
	}
}

func TestReferences(t *testing.T) {
	for text, want := range map[string]string{
		"netdelta": "index.docker.io/library/netdelta:latest", "localhost/netdelta:1": "localhost/netdelta:1",
		"example.org:5000/a/b": "example.org:5000/a/b:latest",
	} {
		if got := reference(t, text).String(); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "Upper/case", "a b", "x:y:z", "netdelta@sha256:00"} {
		if _, err := ParseReference(text, false); err == nil || !strings.Contains(err.Error(), "write REGISTRY/REPOSITORY:TAG") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
