// Package image makes the container images that a test cluster has without a registry: the base, a shell and the small programs of
// busybox, which serves for pods that wait, too; and the programs, in which workloads with daemons find what they run.
package image

import (
	"archive/tar"
	"bytes"
	"errors"
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
func Write(archive, busybox string) error {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return fmt.Errorf("read busybox: %w; 'make setup' installs it", err)
	}
	names, err := applets(busybox)
	if err != nil {
		return err
	}
	content, err := pack(program, names)
	if err != nil {
		return fmt.Errorf("pack the image %s: %w", Reference, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return fmt.Errorf("build the image %s: %w", Reference, err)
	}
	return store(archive, Reference, layer)
}

// store writes an image of one layer to a file.
func store(archive, reference string, layer v1.Layer) error {
	image, err := build(layer)
	if err != nil {
		return fmt.Errorf("build the image %s: %w", reference, err)
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, image)
}

func build(layer v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Env = []string{"PATH=/bin:/usr/bin:/sbin:/usr/sbin"}
	config.Config.Cmd = []string{"/bin/sh", "-c", wait}
	return mutate.ConfigFile(image, config)
}

// applets are the names that a busybox can be called by, without its own.
func applets(busybox string) ([]string, error) {
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s what it can do: %w", busybox, err)
	}
	names := slices.DeleteFunc(strings.Fields(string(list)), func(name string) bool { return name == "busybox" })
	slices.Sort(names)
	return names, nil
}

// pack makes the image's only layer.
func pack(busybox []byte, applets []string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := errors.Join(folder(w, "bin/", 0o755), folder(w, "etc/", 0o755), folder(w, "tmp/", 0o1777),
		file(w, "bin/busybox", 0o755, busybox), file(w, "etc/passwd", 0o644, []byte(users)))
	for _, a := range applets {
		err = errors.Join(err, link(w, "bin/"+a, "busybox"))
	}
	return b.Bytes(), errors.Join(err, w.Close())
}

func folder(w *tar.Writer, name string, mode int64) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode})
}

func link(w *tar.Writer, name, to string) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777})
}

func file(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// users are those that pods commonly run as.
const users = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\nnonroot:x:65532:65532::/tmp:/bin/sh\n"
