// Package image makes the container images that a test cluster has without a registry: the base, a shell and the small programs of
// busybox, which serves for pods that wait, too; and the programs, in which workloads with daemons find what they run.
package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"netdelta/internal/gather"
	"netdelta/testbed/vm/image"
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

// gathering is files of a machine for an image, by their paths there: programs, with the libraries that they are linked with.
type gathering struct {
	root  string            // of the machine
	files map[string]string // regular ones: where they come from
	links map[string]string // symbolic ones: what they say
}

func newGathering(root string) *gathering {
	return &gathering{root: root, files: map[string]string{}, links: map[string]string{}}
}

// merged are the folders that are the ones of their names below /usr.
func merged() []string { return []string{"bin", "lib", "lib64", "sbin"} }

// canonical is a path with /bin and the like written as what they are.
func canonical(p string) string {
	p = path.Clean(p)
	for _, m := range merged() {
		if strings.HasPrefix(p, "/"+m+"/") {
			return "/usr" + p
		}
	}
	return p
}

// add gathers a file, and the libraries that it needs; a folder is none.
func (g *gathering) add(p string) error { return g.addAs(p, p) }

// addAs gathers a file by another path.
func (g *gathering) addAs(from, p string) error {
	p = canonical(p)
	if g.files[p] != "" || g.links[p] != "" {
		return nil
	}
	full := filepath.Join(g.root, from)
	info, err := os.Lstat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the package's own, but taken away by somebody
	case err != nil:
		return err
	case info.IsDir():
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		return g.addLink(full, p)
	case !info.Mode().IsRegular():
		return nil
	}
	g.files[p] = full
	return g.addLibraries(full, p)
}

// addLink gathers a symbolic link, and what it leads to.
func (g *gathering) addLink(full, p string) error {
	to, err := os.Readlink(full)
	if err != nil {
		return err
	}
	g.links[p] = to
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(p), to)
	}
	return g.add(to)
}

// addLibraries gathers what a file is linked with, and what loads it.
func (g *gathering) addLibraries(full, p string) error {
	linked, err := image.ReadLinked(full)
	if notELF := (*elf.FormatError)(nil); errors.As(err, &notELF) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // it is no program and no library
	}
	if err != nil {
		return err
	}
	if linked.Loader != "" {
		if err := g.add(linked.Loader); err != nil {
			return err
		}
	}
	folders := gather.Each(linked.Folders, func(one string) string { return path.Clean(strings.ReplaceAll(one, "$ORIGIN", path.Dir(p))) })
	folders = append(folders, "/usr/lib/x86_64-linux-gnu", "/usr/lib", "/usr/lib64")
	for _, name := range linked.Libraries {
		found, ok := g.findLibrary(name, folders)
		if !ok {
			return fmt.Errorf("%s is linked with %s, which is not in %s", p, name, strings.Join(folders, ", "))
		}
		if err := g.add(found); err != nil {
			return err
		}
	}
	return nil
}

// findLibrary finds a library.
func (g *gathering) findLibrary(name string, folders []string) (string, bool) {
	for _, folder := range folders {
		p := path.Join(folder, name)
		if _, err := os.Stat(filepath.Join(g.root, p)); err == nil {
			return p, true
		}
	}
	return "", false
}

// hasProgram says whether a program of a name was gathered.
func (g *gathering) hasProgram(name string) bool {
	return slices.ContainsFunc([]string{"/usr/bin/", "/usr/sbin/"}, func(folder string) bool {
		return g.files[folder+name] != "" || g.links[folder+name] != ""
	})
}

// pack writes what was gathered, sorted by path.
func (g *gathering) pack(w *tar.Writer) error {
	made := map[string]bool{}
	names := slices.AppendSeq(slices.Collect(maps.Keys(g.files)), maps.Keys(g.links))
	slices.Sort(names)
	for _, name := range names {
		if err := parents(w, made, path.Dir(name)); err != nil {
			return err
		}
		if err := g.packOne(w, name); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return nil
}

// parents writes a folder with those above it, unless they are there.
func parents(w *tar.Writer, made map[string]bool, p string) error {
	if p == "/" || made[p] {
		return nil
	}
	made[p] = true
	if err := parents(w, made, path.Dir(p)); err != nil {
		return err
	}
	return folder(w, strings.TrimPrefix(p, "/")+"/", 0o755)
}

func (g *gathering) packOne(w *tar.Writer, name string) error {
	inside := strings.TrimPrefix(name, "/")
	if to, is := g.links[name]; is {
		return link(w, inside, to)
	}
	f, err := os.Open(g.files[name])
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: inside, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(w, f, info.Size())
	return err
}
