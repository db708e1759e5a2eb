package require

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

var (
	program = regexp.MustCompile(`\bthe program ([A-Za-z0-9_.+-]+)`)
	option  = regexp.MustCompile(`\bCONFIG_[A-Z0-9_]+`)
)

// present says which part of a need this machine has: a program on the PATH, or all options of the kernel that are named. It is
// empty where the need is true, or names neither.
func present(what string, hasProgram, hasOption func(string) bool) string {
	if named := program.FindStringSubmatch(what); named != nil && hasProgram(named[1]) {
		return named[1] + " is on PATH"
	}
	options := option.FindAllString(what, -1)
	for _, o := range options {
		if !hasOption(o) {
			return ""
		}
	}
	if len(options) > 0 {
		return "this kernel has " + strings.Join(options, ", ")
	}
	return ""
}

func hasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// kernelHas is true for an option that the running kernel was built with, in it or as a module; false where it does not tell.
func kernelHas(option string) bool {
	config, err := kernelConfig()
	return err == nil && regexp.MustCompile(`(?m)^`+option+`=[ym]$`).Match(config)
}

func kernelConfig() ([]byte, error) {
	if packed, err := os.Open("/proc/config.gz"); err == nil {
		defer func() { _ = packed.Close() }()
		r, err := gzip.NewReader(packed)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, err
	}
	return os.ReadFile("/boot/config-" + unix.ByteSliceToString(name.Release[:]))
}
