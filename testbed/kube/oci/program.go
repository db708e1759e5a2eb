package oci

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// Program is a binary that an image can be made of.
type Program struct {
	// Path is where the binary is.
	Path string
	// Arch is the processor it runs on, as images name it: "amd64", "arm64".
	Arch string
	// Version and Revision are what the toolchain wrote into it; "" where it wrote none.
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
	if v := info.Main.Version; v != "(devel)" {
		p.Version = v
	}
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
