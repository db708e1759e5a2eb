package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// order is the command line by which netdelta starts a program in a pod. Where the user of this machine keeps files means nothing there.
func order(at ContainerRef, cmd testbed.Command) ([]string, error) {
	env := slices.DeleteFunc(slices.Clone(cmd.Env), func(e string) bool {
		return strings.HasPrefix(e, "HOME=") || strings.HasPrefix(e, "XDG_CACHE_HOME=")
	})
	text, err := json.Marshal(inside.Order{Path: cmd.Path, Args: cmd.Args, Env: env, CPUs: cmd.CPUs})
	if err != nil {
		return nil, err
	}
	return task(at, inside.Start, string(text)), nil
}

// killOrder is the command line that ends a program.
func killOrder(at ContainerRef, pid int) []string { return task(at, inside.Kill, strconv.Itoa(pid)) }

// task is the command line of a task in a pod.
func task(at ContainerRef, args ...string) []string {
	return append([]string{at.Program, inside.Verb}, args...)
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
