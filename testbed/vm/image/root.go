package image

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// Root writes an archive of files in the form in which the kernel takes the first contents of its root folder. Several such
// archives after one another are one. Everything in it belongs to root, and has no time, so that equal files give equal archives.
type Root struct {
	out     *bufio.Writer
	file    io.Closer
	archive *cpio.Writer
	made    map[string]bool // folders
	inode   int64
}

// NewRoot writes an archive to out, until Close.
func NewRoot(out io.Writer) *Root {
	buffered := bufio.NewWriterSize(out, 1<<20)
	return &Root{out: buffered, archive: cpio.NewWriter(buffered), made: map[string]bool{".": true, "/": true}}
}

func newRoot(path string) (*Root, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	r := NewRoot(f)
	r.file = f
	return r, nil
}

// close ends the archive and its file.
func (r *Root) close() error {
	err := r.Close()
	if f, ok := r.file.(*os.File); ok {
		err = errors.Join(err, f.Sync(), f.Close())
	}
	return err
}

// Close ends the archive. What it is written to stays open.
func (r *Root) Close() error { return errors.Join(r.archive.Close(), r.out.Flush()) }

func (r *Root) header(name string, mode cpio.FileMode, size int64) *cpio.Header {
	r.inode++
	return &cpio.Header{Name: strings.TrimPrefix(path.Clean(name), "/"), Mode: mode, Size: size, Links: 1, Inode: r.inode}
}

// Folder adds a folder and those above it, unless they are there.
func (r *Root) Folder(name string) error {
	name = strings.TrimPrefix(path.Clean(name), "/")
	if r.made[name] || name == "" {
		return nil
	}
	if err := r.Folder(path.Dir(name)); err != nil {
		return err
	}
	r.made[name] = true
	return r.archive.WriteHeader(r.header(name, cpio.TypeDir|0o755, 0))
}

// Link adds a symbolic link.
func (r *Root) Link(name, to string) error {
	if err := r.Folder(path.Dir(name)); err != nil {
		return err
	}
	// The target is the contents: the library reads it from there, and leaves writing it to us.
	if err := r.archive.WriteHeader(r.header(name, cpio.TypeSymlink|0o777, int64(len(to)))); err != nil {
		return err
	}
	_, err := r.archive.Write([]byte(to))
	return err
}

// Text adds a file with these contents.
func (r *Root) Text(name string, mode fs.FileMode, text []byte) error {
	if err := r.Folder(path.Dir(name)); err != nil {
		return err
	}
	err := r.archive.WriteHeader(r.header(name, cpio.TypeReg|cpio.FileMode(mode.Perm()), int64(len(text))))
	if err != nil {
		return err
	}
	_, err = r.archive.Write(text)
	return err
}

// Copy adds a file or, with all that is in it, a folder of this machine. Symbolic links are followed at the top only.
func (r *Root) Copy(from, name string) error {
	about, err := os.Stat(from)
	if err != nil {
		return err
	}
	return r.copy(from, name, about)
}

func (r *Root) copy(from, name string, about fs.FileInfo) error {
	switch {
	case about.IsDir():
		return r.copyFolder(from, name)
	case about.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return r.Link(name, to)
	case !about.Mode().IsRegular():
		return fmt.Errorf("bring %s into the guest: it is neither a file nor a folder", from)
	}
	if err := r.Folder(path.Dir(name)); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	err = r.archive.WriteHeader(r.header(name, cpio.TypeReg|cpio.FileMode(about.Mode().Perm()), about.Size()))
	if err == nil {
		_, err = io.Copy(r.archive, in)
	}
	if err := errors.Join(err, in.Close()); err != nil {
		return fmt.Errorf("bring %s into the guest: %w", from, err)
	}
	return nil
}

func (r *Root) copyFolder(from, name string) error {
	if err := r.Folder(name); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		about, err := e.Info()
		if err != nil {
			return err
		}
		if err := r.copy(path.Join(from, e.Name()), path.Join(name, e.Name()), about); err != nil {
			return err
		}
	}
	return nil
}

// base adds the folders and files that any guest has.
func (r *Root) base() error {
	var err error
	for _, d := range []string{"bin", "sbin", "usr/bin", "usr/sbin", "proc", "sys", "dev", "tmp", "run", "etc", "root", "lib", "lib64", "var/lib", "var/tmp"} {
		err = errors.Join(err, r.Folder(d))
	}
	return errors.Join(err,
		r.Link("var/run", "/run"),
		r.Text("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")),
		r.Text("etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n")),
		r.Text("etc/hosts", 0o644, []byte("127.0.0.1 localhost\n::1 localhost\n")),
		r.Text("etc/os-release", 0o644, []byte("ID=netdelta\nPRETTY_NAME=\"netdelta guest\"\n")),
	)
}
