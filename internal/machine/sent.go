package machine

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
)

// AgentName is the file name of the small program that is sent to where workloads run.
const AgentName = "netdelta-agent"

// SentProgram is the file that is sent to where workloads run: netdelta-agent in this program's folder, else this program, which does the
// same and is many times larger. One of another build is refused.
func SentProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	small := filepath.Join(filepath.Dir(self), AgentName)
	err = ofThisBuild(small)
	if errors.Is(err, fs.ErrNotExist) {
		return self, nil
	}
	if err != nil {
		return "", err
	}
	return small, nil
}

// ofThisBuild refuses a program of another version than this one.
func ofThisBuild(path string) error {
	there, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("look at %s, which is sent to where workloads run: %w; make build builds it anew", path, err)
	}
	if here, ok := debug.ReadBuildInfo(); ok && VersionOf(there) != VersionOf(here) {
		return fmt.Errorf("%s is version %s and this program is %s: build both anew, or remove it", path, VersionOf(there), VersionOf(here))
	}
	return nil
}

// SentProgramFor is SentProgram for machines of an architecture, as Go names it. For another one than this program's it is the file
// netdelta-agent-ARCH in this program's folder.
func SentProgramFor(arch string) (string, error) {
	if arch == runtime.GOARCH {
		return SentProgram()
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), AgentName+"-"+arch)
	build := fmt.Sprintf("build it by CGO_ENABLED=0 GOARCH=%s go build -o %s ./cmd/netdelta-agent", arch, path)
	err = ofThisBuild(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no program for %s in this program's folder: %w; %s", arch, fs.ErrNotExist, build)
	}
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, build)
	}
	return path, nil
}

// CheckStatic checks that a program needs no other files, so that it runs in any image.
func CheckStatic(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("look at %s, which is to run in containers: %w", path, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically and does not run in an image that lacks its libraries: build it with CGO_ENABLED=0", path)
		}
	}
	return nil
}
