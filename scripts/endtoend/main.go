// Command endtoend uses the program as a user does, on the real system: whole runs, killed runs that are resumed, and two runs
// at once; or, when asked for services, the short forms of the studies with daemons. It fails when an answer is missing or out of
// form, and when anything of a run is left on the machine.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	played := scenes()
	switch {
	case len(os.Args) == 3 && os.Args[2] == "services":
		played = services()
	case len(os.Args) != 2:
		fmt.Fprintln(os.Stderr, "usage: endtoend NETDELTA [services]")
		os.Exit(2)
	}
	if err := run(os.Args[1], played); err != nil {
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

// services are the scenes with daemons.
func services() []scene {
	var all []scene
	for _, of := range shorts() {
		all = append(all, scene{of.study + ", " + of.workload, func(s *stage) error { return s.runsShort(of) }})
	}
	return append(all, scene{"killed services", (*stage).killsServices})
}

func run(program string, scenes []scene) error {
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
	for _, scene := range scenes {
		began := time.Now()
		err := s.unchanged(func() error { return scene.play(s) })
		fmt.Printf("%-22s %6.1f s  %s\n", scene.name, time.Since(began).Seconds(), verdict(err))
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
