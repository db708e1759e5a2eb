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
	all := scenarios()
	switch {
	case len(os.Args) == 3 && os.Args[2] == "services":
		all = services()
	case len(os.Args) != 2:
		fmt.Fprintln(os.Stderr, "usage: endtoend NETDELTA [services]")
		os.Exit(2)
	}
	if err := run(os.Args[1], all); err != nil {
		fmt.Fprintf(os.Stderr, "endtoend: %v\n", err)
		os.Exit(1)
	}
}

// scenario is one thing that users do.
type scenario struct {
	name string
	do   func(*user) error
}

func scenarios() []scenario {
	return []scenario{
		{"what is there", (*user).looksAround},
		{"the default study", (*user).runsDefault},
		{"two runs at once", (*user).runsTwice},
		{"a killed run", (*user).killsAndResumes},
	}
}

// services are the scenarios with daemons.
func services() []scenario {
	var all []scenario
	for _, of := range shorts() {
		all = append(all, scenario{of.study + ", " + of.workload, func(u *user) error { return u.runsShort(of) }})
	}
	return append(all, scenario{"killed services", (*user).killsServices})
}

func run(program string, all []scenario) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "netdelta-endtoend-")
	if err != nil {
		return err
	}
	u := &user{program: program, folder: folder}
	var failed error
	for _, one := range all {
		began := time.Now()
		verdict, err := "ok", unchanged(func() error { return one.do(u) })
		if err != nil {
			verdict, failed = "FAILED", errors.Join(failed, fmt.Errorf("%s: %w", one.name, err))
		}
		fmt.Printf("%-22s %6.1f s  %s\n", one.name, time.Since(began).Seconds(), verdict)
	}
	if failed != nil {
		return fmt.Errorf("%w\nthe run folders are in %s", failed, folder)
	}
	return os.RemoveAll(folder)
}
