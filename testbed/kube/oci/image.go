// Package oci makes container images of netdelta's own program, without a container engine: one static binary at /netdelta, run by a
// user without rights. The same binary gives the same image, to the last bit of its digest.
package oci

import (
	"archive/tar"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"netdelta/internal/machine"
)

// What an image runs, and its user. The user is the one that images without any account use by custom: it is not root, and has a
// number, which a cluster that admits no root must see.
const (
	Entrypoint = "/netdelta"
	User       = 65532
)

// Image makes the image of a program: one layer with the program, and a folder for temporary files that anyone may write.
func Image(p Program) (v1.Image, error) {
	layer, err := layer(p)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: p.Built}, CreatedBy: "netdelta image"}})
	if err != nil {
		return nil, fmt.Errorf("put the program into an image: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", p.Arch, v1.Time{Time: p.Built}
	user := strconv.Itoa(User)
	config.Config = v1.Config{
		Entrypoint: []string{Entrypoint}, User: user + ":" + user, WorkingDir: "/tmp", Labels: labels(p),
		Env: []string{"HOME=/tmp", "PATH=/"},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("describe the image: %w", err)
	}
	annotated, ok := mutate.Annotations(image, labels(p)).(v1.Image)
	if !ok {
		return nil, errors.New("describe the image: an image with annotations is none any more")
	}
	return annotated, nil
}

// labels are what is said of an image (https://specs.opencontainers.org/image-spec/annotations).
func labels(p Program) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":       "netdelta",
		"org.opencontainers.image.description": "measures what container networks cost workloads",
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	for name, value := range map[string]string{"version": p.Version, "revision": p.Revision} {
		if value != "" {
			all["org.opencontainers.image."+name] = value
		}
	}
	if !p.Built.IsZero() {
		all["org.opencontainers.image.created"] = p.Built.Format(time.RFC3339)
	}
	return all
}

// layer is the image's only one. It is read anew from the program each time that somebody asks for it, since it is as large.
func layer(p Program) (v1.Layer, error) {
	info, err := os.Stat(p.Path)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return unpacked(p, info.Size()) }, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressedCaching) // it is asked for its digest, its size and its bytes
	if err != nil {
		return nil, fmt.Errorf("pack the program %s: %w", p.Path, err)
	}
	return described{l}, nil
}

// described hides what the library's layer says of itself: an empty list of annotations, where the manifest, read back, has none.
type described struct{ v1.Layer }

// unpacked opens the layer's archive, of a program of this size.
func unpacked(p Program, size int64) (io.ReadCloser, error) {
	file, err := os.Open(p.Path)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() {
		_ = w.CloseWithError(errors.Join(pack(w, file, p.Built, size), file.Close())) // it never fails
	}()
	return r, nil
}

// pack writes the layer's archive. Times are the revision's, owners root, so that only the program decides. A program that is replaced while it
// is packed must not become an archive that looks whole.
func pack(w io.Writer, file io.Reader, at time.Time, size int64) error {
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	archive := tar.NewWriter(w)
	folder := tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, ModTime: at, Format: tar.FormatUSTAR}
	program := tar.Header{Typeflag: tar.TypeReg, Name: "netdelta", Mode: 0o555, Size: size, ModTime: at, Format: tar.FormatUSTAR}
	for _, h := range []tar.Header{folder, program} {
		if err := archive.WriteHeader(&h); err != nil {
			return err
		}
	}
	n, err := io.CopyN(archive, file, size)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the program became %d bytes shorter while it was packed: %w", size-n, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return err
	}
	return archive.Close()
}

// ErrSameProcessor is matched by the error of Index for two programs that are for one kind of processor.
var ErrSameProcessor = errors.New("two programs for one kind of processor")

// Index makes one name for several processors: an image of each program, of which a node takes the one that it can run. The order in
// which the programs are given does not matter.
func Index(programs ...Program) (v1.ImageIndex, error) {
	sorted := slices.SortedFunc(slices.Values(programs), func(a, b Program) int { return strings.Compare(a.Arch, b.Arch) })
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, p := range sorted {
		if i > 0 && p.Arch == sorted[i-1].Arch {
			return nil, fmt.Errorf("put %s and %s under one name: %w, %s; give one of each", sorted[i-1].Path, p.Path, ErrSameProcessor, p.Arch)
		}
		image, err := Image(p)
		if err != nil {
			return nil, err
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: p.Arch},
		}})
	}
	return all, nil
}

// writeIndex writes an index with all its images. Readers of docker's manifest, which has no room for several processors, find the first
// image there.
func (a *archive) writeIndex(index v1.ImageIndex, ref Reference) error {
	listed, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	var docker []manifest
	for _, d := range listed.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return fmt.Errorf("write the images: %w", err)
		}
		docker = append(docker, a.image(image, ref))
	}
	a.blob(index.Digest, index.RawManifest)
	descriptor, err := ref.named(index)
	if err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	return a.finish(docker[:min(1, len(docker))], descriptor)
}

// Program is a binary that an image can be made of.
type Program struct {
	// Path is where the binary is.
	Path string
	// Arch is the processor it runs on, as images name it: "amd64", "arm64".
	Arch string
	// Version is netdelta's, by machine.VersionOf. Revision is what the toolchain wrote into it; "" where it wrote none.
	Version, Revision string
	// Built is the time of the revision; the zero time where it is not known.
	Built time.Time
}

// ErrDynamic is matched by the error of Inspect for a binary that needs libraries, which an image of it alone has not.
var ErrDynamic = errors.New("linked dynamically")

// Inspect looks at a binary. It is refused when it is no program for Linux, or needs libraries (the error then matches ErrDynamic).
func Inspect(path string) (Program, error) {
	p := Program{Path: path}
	file, err := elf.Open(path)
	if err != nil {
		return p, fmt.Errorf("read the program %s: %w; an image takes a program for Linux", path, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if p.Arch, err = architecture(file.Machine); err != nil {
		return p, fmt.Errorf("read the program %s: %w", path, err)
	}
	if why, err := needs(file); err != nil || why != "" {
		if err == nil {
			err = fmt.Errorf("%w: %s; build it with CGO_ENABLED=0, as make build does", ErrDynamic, why)
		}
		return p, fmt.Errorf("make an image of %s: %w", path, err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return p, fmt.Errorf("read what %s was built of: %w; an image takes a program built by Go, with its build information", path, err)
	}
	return p.describe(info), nil
}

// architecture is a processor as images name it.
func architecture(machine elf.Machine) (string, error) {
	switch machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("it is for %s; images are made for x86_64 and aarch64", machine)
}

// needs says which other files a program needs, "" for a static one.
func needs(file *elf.File) (string, error) {
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return "it asks for a loader", nil
		}
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return "", fmt.Errorf("read which libraries it needs: %w", err)
	}
	if len(libraries) > 0 {
		return "it needs " + libraries[0], nil
	}
	return "", nil
}

// describe adds what the toolchain wrote into the program.
func (p Program) describe(info *debug.BuildInfo) Program {
	p.Version = machine.VersionOf(info)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			p.Revision = s.Value
		case "vcs.time":
			if at, err := time.Parse(time.RFC3339, s.Value); err == nil {
				p.Built = at.UTC()
			}
		}
	}
	return p
}
