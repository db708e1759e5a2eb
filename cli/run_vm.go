package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"netdelta/experiment/guest"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
	"netdelta/unit"
	"netdelta/workload"
)

// vmTestbed is the kind of testbed that is a lab inside a guest.
const vmTestbed = "vm"

// isGuest says whether a kind of testbed is in a guest.
func isGuest(kind string) bool { return kind == vmTestbed }

// runInGuest carries a run out in a guest, by this same program; its folder and its page are here.
func (env *environment) runInGuest(ctx context.Context, s *study.Study, o runOptions) (err error) {
	request, err := guestRequest(s, o)
	if err != nil {
		return err
	}
	img, err := env.buildImage(ctx, false)
	if err != nil {
		return err
	}
	m, err := env.guestFor(s)
	if err != nil {
		return err
	}
	g, err := vm.Boot(ctx, img, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	// Not killed by an interrupt: it ends in good order when its standard input does.
	program, err := g.Exec(context.WithoutCancel(ctx), vm.Command{Path: "/netdelta", Args: []string{guest.RunVerb}})
	if err != nil {
		return err
	}
	shown := env.progress(o.quiet)
	run, folder, err := guest.Outside{
		Request: request, Program: program, Progress: shown, Judge: words.NewJudge(env.workloads),
		Open:     func(run *result.Run) (*result.Folder, error) { return env.openFolder(s, run, o) },
		Complete: func(e result.Environment) result.Environment { return inGuest(e, img, g.Machine.Accel) },
	}.Follow(ctx)
	shown.stop()
	err = starved(err, m.Memory)
	if folder == nil {
		return refused(err)
	}
	return env.finish(run, folder, o, errors.Join(err, folder.Close()))
}

// A guest holds the agents of all cells at once, a few MiB each.
const (
	guestMemoryLeast = 1 * unit.GiB
	guestMemoryMost  = 6 * unit.GiB
	guestMemoryShare = 4 // it may take one part in so many of what is free
)

// guestFor is the guest that a study runs in.
func (env *environment) guestFor(s *study.Study) (vm.Machine, error) {
	free, err := machine.FreeMemory()
	if err != nil {
		return vm.Machine{}, err
	}
	m := vm.Machine{Files: guestFiles(s), Cards: guestCards(s), Memory: min(max(free/guestMemoryShare, guestMemoryLeast), guestMemoryMost)}
	if m.Cards > 0 {
		m.Memory = min(m.Memory, vm.MostMemoryWithCards)
	}
	m.Memory -= m.Memory % unit.MiB
	if env.hasPrograms(s) {
		m.Archives = []image.Archive{image.Tools, image.CNI, image.Services}
	}
	return m, nil
}

// hasPrograms says whether a study's workloads need programs of others.
func (env *environment) hasPrograms(s *study.Study) bool {
	for _, named := range s.Workloads {
		at := slices.IndexFunc(env.workloads, func(w workload.Workload) bool { return w.Name == named.Name })
		if at < 0 {
			continue
		}
		for _, p := range named.Levels.Join(s.Factors).Combinations() {
			if len(env.workloads[at].Demands(p).Programs) > 0 {
				return true
			}
		}
	}
	return false
}

// starved adds to the error of a program that was killed in a guest what kills there.
func starved(err error, memory unit.Bytes) error {
	var exit *vm.ExitError
	if !errors.As(err, &exit) || unix.Signal(exit.Exit.Signal) != unix.SIGKILL {
		return err
	}
	return fmt.Errorf("%w: the guest's memory of %v was most likely full; run fewer cells at once (--networks, --workloads) or swap networks live (--blocks 6)", err, memory)
}

// guestRequest is what a guest is told.
func guestRequest(s *study.Study, o runOptions) (guest.Request, error) {
	text, err := s.Marshal()
	if err != nil {
		return guest.Request{}, err
	}
	r := guest.Request{Study: string(text)}
	if o.overrides.Builds != nil {
		r.Builds = o.builds
	}
	if o.resume == "" {
		return r, nil
	}
	contents, err := result.LoadTrials(o.resume)
	if err != nil {
		return r, err
	}
	if old, err := result.Load(o.resume); err == nil { // without, the study is all that there is of it
		r.Run = &old
	}
	r.Trials = contents.Trials
	return r, nil
}

// guestFiles are those of this machine that a study's networks are made of.
func guestFiles(s *study.Study) []vm.File {
	var files []vm.File
	for _, n := range append([]string{s.Baseline}, s.Networks...) {
		if name, is := strings.CutPrefix(n, network.CNIPrefix); is {
			files = append(files, vm.File{Host: name, Guest: filepath.Join("/", name)})
			files = append(files, pluginFiles(s, n)...)
		}
	}
	return files
}

// inGuest adds to an environment what only this side of a guest knows.
func inGuest(e result.Environment, img image.Image, accel vm.Accel) result.Environment {
	e.Virtual = fmt.Sprintf("QEMU %s, %s", img.QEMU, accel)
	versions := map[string]string{"qemu": img.QEMU, "accelerator": string(accel), "image": img.ID()}
	for tool, version := range e.Versions {
		versions[tool] = version
	}
	e.Versions = versions
	return e
}

// refused gives a guest's refusal of a study its exit status.
func refused(err error) error {
	var input *guest.InputError
	if !errors.As(err, &input) {
		return err
	}
	if input.Kind == guest.Nothing {
		return withStatus(exitNothing, err)
	}
	return withStatus(exitUsage, err)
}

// elsewhere says whether a call asks for a guest, in which it has all rights, or for a cluster, and for nothing of this machine.
func (env *environment) elsewhere(cmd *cobra.Command, a []string) bool {
	exact, err := cmd.Flags().GetBool("exact")
	kind, kindErr := cmd.Flags().GetString("testbed")
	if kindErr == nil && kind == "" && len(a) == 1 {
		if s, err := env.readStudy(a[0]); err == nil && isCluster(s.Testbed.Kind) {
			return true
		}
	}
	return err == nil && exact || kindErr == nil && (isGuest(kind) || isCluster(kind))
}
