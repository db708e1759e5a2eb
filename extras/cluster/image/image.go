// Package image makes the container images that a test cluster has without a registry: the base, a shell and the small programs of
// busybox, which serves for pods that wait, too; and the programs, in which workloads with daemons find what they run.
package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Reference is what the image is called in a cluster.
const Reference = "localhost/netdelta/base:1"

// wait does nothing until it is asked to end, and waits for processes that others left to it.
const wait = `trap "exit 0" TERM INT; while :; do sleep 3600 & wait $!; done`

// Write makes the image of a static busybox and writes it to a file, as an archive that containerd imports.
func Write(file, busybox string) error {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return fmt.Errorf("read busybox: %w; 'make setup' installs it", err)
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("ask %s what it can do: %w", busybox, err)
	}
	content, err := pack(program, strings.Fields(string(list)))
	if err != nil {
		return fmt.Errorf("pack the image %s: %w", Reference, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return fmt.Errorf("build the image %s: %w", Reference, err)
	}
	return store(file, Reference, layer)
}

// store writes an image of one layer to a file.
func store(file, reference string, layer v1.Layer) error {
	image, err := build(layer)
	if err != nil {
		return fmt.Errorf("build the image %s: %w", reference, err)
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(file, tag, image)
}

func build(layer v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Config.Env = []string{"PATH=/bin:/usr/bin:/sbin:/usr/sbin"}
	file.Config.Cmd = []string{"/bin/sh", "-c", wait}
	return mutate.ConfigFile(image, file)
}

// pack makes the image's only layer.
func pack(busybox []byte, applets []string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	entries := []tar.Header{
		{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: int64(len(busybox))},
		{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644, Size: int64(len(users))},
	}
	slices.Sort(applets)
	for _, a := range applets {
		if a != "busybox" {
			entries = append(entries, tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + a, Linkname: "busybox", Mode: 0o777})
		}
	}
	contents := map[string][]byte{"bin/busybox": busybox, "etc/passwd": []byte(users)}
	for _, e := range entries {
		if err := w.WriteHeader(&e); err != nil {
			return nil, err
		}
		if _, err := w.Write(contents[e.Name]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

// users are those that pods commonly run as.
const users = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nnonroot:x:65532:65532::/tmp:/bin/sh\n"
