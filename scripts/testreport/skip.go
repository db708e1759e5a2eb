package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
)

// machine is what a test may have been skipped for want of.
type machine struct {
	spaces  bool              // may make network namespaces
	command func(string) bool // is on PATH
	option  func(string) bool // is set in the kernel: CONFIG_...
}

func thisMachine() machine {
	config := kernelConfig()
	return machine{
		spaces: mayMakeSpaces(),
		command: func(s string) bool {
			_, err := exec.LookPath(s)
			return err == nil
		},
		option: func(s string) bool { return config[s] },
	}
}

func mayMakeSpaces() bool {
	n, err := netns.New(nil)
	return err == nil && n.Close() == nil
}

// kernelConfig is the options that the running kernel was built with, in it or as modules; empty where it does not tell.
func kernelConfig() map[string]bool {
	options := map[string]bool{}
	text, err := readKernelConfig()
	if err != nil {
		return options
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		option, value, found := strings.Cut(lines.Text(), "=")
		if found && (value == "y" || value == "m") {
			options[option] = true
		}
	}
	return options
}

func readKernelConfig() ([]byte, error) {
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

var (
	// place is what the testing package puts before a message: "    file_test.go:12: ".
	place   = regexp.MustCompile(`^\s*\S+\.go:\d+: `)
	needs   = regexp.MustCompile(`\bneeds \S`)
	program = regexp.MustCompile(`\bneeds the program ([A-Za-z0-9_.+-]+)`)
	spaces  = regexp.MustCompile(`\bneeds the right to make network namespaces`)
	option  = regexp.MustCompile(`\bCONFIG_[A-Z0-9_]+`)
)

// reason is the message of a skipped test, from its output.
func reason(output []string) string {
	var message []string
	for _, line := range output {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "===") || strings.HasPrefix(trimmed, "--- ") {
			continue
		}
		message = append(message, strings.TrimSpace(place.ReplaceAllString(line, "")))
	}
	return strings.Join(message, " ")
}

// hides says why a skip for this reason is wrong on this machine; empty when it is right.
func hides(reason string, m machine) string {
	if !needs.MatchString(reason) {
		return "it does not say what it needs (package require has the words)"
	}
	if what := program.FindStringSubmatch(reason); what != nil && m.command(what[1]) {
		return what[1] + " is on PATH"
	}
	if m.spaces && spaces.MatchString(reason) {
		return "network namespaces can be made here"
	}
	options := option.FindAllString(reason, -1)
	for _, o := range options {
		if !m.option(o) {
			return ""
		}
	}
	if len(options) > 0 {
		return "this kernel has " + strings.Join(options, ", ")
	}
	return ""
}

// writeSkips lists the skipped tests, and returns an error naming those that this machine could have run.
func (r *report) writeSkips(w *bytes.Buffer, m machine) error {
	if len(r.skipped) == 0 {
		fmt.Fprintln(w, "Skipped: nothing")
		return nil
	}
	var wrong []error
	fmt.Fprintf(w, "Skipped: %d\n", len(r.skipped))
	for _, s := range r.skipped {
		fmt.Fprintf(w, "  %s %s: %s\n", s.pkg, s.test, s.reason)
		if why := hides(s.reason, m); why != "" {
			wrong = append(wrong, fmt.Errorf("%s %s must not be skipped: %s", s.pkg, s.test, why))
		}
	}
	return errors.Join(wrong...)
}
