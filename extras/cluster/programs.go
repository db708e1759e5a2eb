package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"netdelta/extras/cluster/image"
	"netdelta/extras/cluster/supervisor"
)

// programs makes the image of the programs that workloads run, and gives it to all nodes, or leaves it in an archive.
func programs(f supervisor.Folder, arguments []string, out, complaints io.Writer) (err error) {
	set := flag.NewFlagSet("cluster programs", flag.ContinueOnError)
	set.SetOutput(complaints)
	netdelta := set.String("netdelta", "", "a netdelta that the image holds, too")
	if err := set.Parse(arguments); err != nil || set.NArg() > 1 {
		return errUsage
	}
	arguments = set.Args()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("find busybox: %w; 'make setup' installs it", err)
	}
	var archive string
	if len(arguments) == 1 {
		archive = arguments[0]
	} else {
		if _, err := f.Status(); err != nil {
			return err
		}
		folder, err := os.MkdirTemp("", "netdelta-programs-*")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		archive = filepath.Join(folder, "programs.tar")
	}
	lacking, err := image.WritePrograms(archive, busybox, *netdelta)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		fmt.Fprintf(out, "without %s, which this machine lacks: 'make setup' installs them\n", strings.Join(lacking, " "))
	}
	if len(arguments) == 0 {
		if err := f.Load(archive); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, image.ProgramsReference)
	return nil
}
