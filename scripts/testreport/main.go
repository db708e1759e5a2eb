// Command testreport reads what `go test -json` writes and prints what `go test` would have, then every skipped test with its
// reason. It fails when a test failed, when a skip gives no reason, and when a test was skipped for want of something that
// this machine has: a skip must not hide a fault.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	list := flag.String("skips", "", "also write the list of skips into this `file`")
	again := flag.String("again", "", "write what deserves a second try into this `file`")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	err := run(os.Stdin, out, *list, *again)
	if err := errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintf(os.Stderr, "testreport: %v\n", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out *bufio.Writer, list, again string) error {
	r, err := read(in, out)
	if err != nil {
		return err
	}
	var skips bytes.Buffer
	hidden := r.writeSkips(&skips, thisMachine())
	if list != "" {
		if err := os.WriteFile(list, skips.Bytes(), 0o644); err != nil {
			return fmt.Errorf("keeping the list of skips: %w", err)
		}
	}
	fmt.Fprintf(out, "\n%s\n%s", skips.String(), strings.Join(r.lines, ""))
	fmt.Fprintf(out, "%d tests passed, %d skipped, %d failed; %d packages\n", r.passed, len(r.skipped), r.failed, len(r.lines))
	if hidden != nil {
		again = "" // a second try would not find what was skipped
	}
	return errors.Join(r.verdict(), hidden, r.keepAgain(again))
}

// event is a line of `go test -json`, as documented by `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// name tells tests of all packages apart.
type name struct{ pkg, test string }

// skip is a test that was skipped.
type skip struct {
	name
	reason string
}

// report is what came of the tests.
type report struct {
	passed, failed int
	broken         []string // packages that failed, by a test or otherwise
	failing        []name
	unbuilt        []string        // packages that don't build
	died           map[string]bool // packages that ended in the middle of a test
	skipped        []skip
	lines          []string // one of each package: go test's own
	output         map[name][]string
}

// read takes events to the end and passes on the output of packages, of builds and of failed tests as it comes.
func read(in io.Reader, out *bufio.Writer) (*report, error) {
	r := &report{output: map[name][]string{}, died: map[string]bool{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				// Not every complaint of the go command is an event.
				out.Write(line)
			} else {
				r.take(e, out)
			}
		}
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the events of go test: %w", err)
		}
	}
}

func (r *report) take(e event, out *bufio.Writer) {
	key := name{e.Package, e.Test}
	switch e.Action {
	case "build-fail":
		r.unbuilt = append(r.unbuilt, e.Package)
	case "build-output":
		out.WriteString(e.Output)
	case "output":
		r.output[key] = append(r.output[key], e.Output)
		if e.Test == "" && isPackageLine(e.Output) {
			if !strings.HasPrefix(e.Output, "?") { // without tests there is no result to show twice
				r.lines = append(r.lines, e.Output)
			}
			out.WriteString(e.Output)
			_ = out.Flush() // who waits wants to see it now; an error comes again with the last Flush
		}
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e, out)
			return
		}
		switch e.Action {
		case "pass":
			r.passed++
		case "skip":
			r.skipped = append(r.skipped, skip{key, reason(r.output[key])})
		case "fail":
			r.failed++
			r.failing = append(r.failing, key)
			out.WriteString(strings.Join(r.output[key], ""))
		}
		delete(r.output, key)
	}
}

// endPackage shows, of a package that failed, what it wrote outside its tests and what the tests wrote that never ended.
func (r *report) endPackage(e event, out *bufio.Writer) {
	if e.Action == "fail" {
		r.broken = append(r.broken, e.Package)
		var left []name
		for key := range r.output {
			if key.pkg == e.Package {
				left = append(left, key)
			}
		}
		slices.SortFunc(left, func(a, b name) int { return strings.Compare(a.test, b.test) })
		for _, key := range left {
			r.died[key.pkg] = r.died[key.pkg] || key.test != ""
			for _, text := range r.output[key] {
				if key.test != "" || !isPackageLine(text) {
					out.WriteString(text)
				}
			}
		}
	}
	for key := range r.output {
		if key.pkg == e.Package {
			delete(r.output, key)
		}
	}
}

// isPackageLine tells the line with which go test ends a package.
func isPackageLine(s string) bool {
	for _, start := range []string{"ok  \t", "FAIL\t", "?   \t", "---\t"} {
		if strings.HasPrefix(s, start) {
			return true
		}
	}
	return strings.HasPrefix(s, "\t") && strings.Contains(s, "coverage:")
}

// verdict is the error of tests that failed.
func (r *report) verdict() error {
	if len(r.broken) == 0 && r.failed == 0 {
		return nil
	}
	return fmt.Errorf("%d tests failed, in %s", r.failed, strings.Join(r.broken, ", "))
}
