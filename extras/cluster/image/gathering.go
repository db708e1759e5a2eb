package image

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/testbed/vm/image"
)

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
