package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"netdelta/testbed/vm/image"
	"netdelta/testbed/vm/wire"
)

// static returns nil for a program that needs nothing but the kernel.
func static(program string) error {
	l, err := image.ReadLinked(program)
	if err == nil && l.Loader != "" {
		err = errDynamic
	}
	if err != nil {
		return fmt.Errorf("bring %s into a guest: %w", program, err)
	}
	return nil
}

// initrd puts together what the guest finds in its root folder, in memory: there is no file that could be left behind.
func initrd(i image.Image, m Machine) (f *os.File, err error) {
	fd, err := unix.MemfdCreate("netdelta-guest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make room for the guest's files: %w", err)
	}
	f = os.NewFile(uintptr(fd), "the guest's files")
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("put the guest's files together: %w", err), f.Close())
			f = nil
		}
	}()
	archives := []image.Archive{image.Base}
	for _, a := range m.Archives {
		if !slices.Contains(archives, a) {
			archives = append(archives, a)
		}
	}
	for _, a := range archives {
		if err := appendFile(f, i.ArchiveFile(a)); err != nil {
			return f, err
		}
	}
	root := image.NewRoot(f)
	err = root.Copy(m.Program, "/netdelta")
	for _, b := range m.Files {
		if err == nil {
			err = root.Copy(b.Host, b.Guest)
		}
	}
	if err == nil && len(m.Script) > 0 {
		var text []byte
		if text, err = json.Marshal(m.Script); err == nil {
			err = root.Text(wire.ScriptFile, 0o600, text)
		}
	}
	if err != nil {
		return f, err
	}
	return f, root.Close()
}

// align is where the kernel expects the next archive to begin.
const align = 4

func appendFile(to *os.File, path string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if rest := n % align; err == nil && rest > 0 {
		_, err = to.Write(make([]byte, align-rest))
	}
	return errors.Join(err, from.Close())
}
