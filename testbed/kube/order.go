package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// order is the command line by which netdelta starts a program in a pod. Where the user of this machine keeps files means nothing there.
func order(at ContainerRef, cmd testbed.Command) []string {
	env := slices.DeleteFunc(slices.Clone(cmd.Env), func(e string) bool {
		return strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "XDG_CACHE_HOME=")
	})
	return task(at, inside.Start, inside.Order{Path: cmd.Path, Args: cmd.Args, Env: env, CPUs: cmd.CPUs})
}

// task is the command line of a task in a pod. Parameters that are not text are given to it as JSON.
func task(at ContainerRef, name string, params ...any) []string {
	argv := []string{at.Program, inside.Verb, name}
	for _, p := range params {
		text, is := p.(string)
		if !is {
			data, _ := json.Marshal(p) // plain data, for which it never fails
			text = string(data)
		}
		argv = append(argv, text)
	}
	return argv
}

// started reads what a program that is started says first.
func started(line []byte) (pid int, err error) {
	var s inside.Started
	if err := json.Unmarshal(line, &s); err != nil {
		return 0, fmt.Errorf("what is there is not this netdelta: it said %.80q; give the image of this version, or --base-image", line)
	}
	if s.Error != "" {
		return 0, errors.New(s.Error)
	}
	return s.PID, nil
}
