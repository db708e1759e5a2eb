// Command endtoend uses the program as a user does, on the real system: whole runs, killed runs that are resumed, and two runs
// at once. It fails when an answer is missing or out of form, and when anything of a run is left on the machine.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: endtoend NETDELTA")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "endtoend: %v\n", err)
		os.Exit(1)
	}
}

// scene is one thing that users do.
type scene struct {
	name string
	play func(*stage) error
}

func scenes() []scene {
	return []scene{
		{"what is there", (*stage).looksAround},
		{"the default study", (*stage).runsDefault},
		{"two runs at once", (*stage).runsTwice},
		{"a killed run", (*stage).killsAndResumes},
	}
}

func run(program string) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "netdelta-endtoend-")
	if err != nil {
		return err
	}
	s := &stage{program: program, folder: folder}
	var failed error
	for _, scene := range scenes() {
		began := time.Now()
		err := s.unchanged(func() error { return scene.play(s) })
		fmt.Printf("%-20s %6.1f s  %s\n", scene.name, time.Since(began).Seconds(), verdict(err))
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", scene.name, err))
		}
	}
	if failed != nil {
		return fmt.Errorf("%w\nthe run folders are in %s", failed, folder)
	}
	return os.RemoveAll(folder)
}

func verdict(err error) string {
	if err != nil {
		return "FAILED"
	}
	return "ok"
}
