package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/session"
	"netdelta/experiment/studies"
	"netdelta/report/annotations"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed/kube/oci"
	"netdelta/testbed/kube/schedule"
)

func newKubeCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kube",
		Short: "Measure a cluster each night: a schedule, and what it runs",
		Example: `  netdelta kube schedule --image registry.example.org/netdelta:1 --namespace netdelta | kubectl apply -f -
  netdelta kube nightly latency --runs runs/nightly -- --image registry.example.org/netdelta:1`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newScheduleCommand(env), newNightlyCommand(env))
	return cmd
}

func newScheduleCommand(env *environment) *cobra.Command {
	o := schedule.Options{}
	cmd := &cobra.Command{
		Use:   "schedule",
		Short: "Print a CronJob that measures a cluster each night and compares it with the night before",
		Long: `Print the manifest of a CronJob that measures a cluster from inside and compares each run with the last: with an account, the
rights that a run takes and no more, and a volume that keeps the run folders. A job fails where a network has become dearer
beyond the margin, and its log says which, as text and as annotations (::error ...::). Nothing is made: apply what is
printed, with an account that may grant rights.

The image holds netdelta at /netdelta (netdelta image --push makes it). The pod that measures meets Pod Security
"restricted", and so do those that are measured; the network host, whose pods can't, is left out where the namespace's
level refuses them.

EXIT STATUS
  0    done
  1    the study's file can't be read
  2    bad usage or study file`,
		Example: `  netdelta kube schedule --image registry.example.org/netdelta:1 --namespace netdelta | kubectl apply -f -
  netdelta kube schedule --image REF --namespace N --schedule "30 3 * * 1-5" --study throughput --margin 5%`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.printSchedule(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Image, "image", "", "image that holds netdelta, as nodes pull it")
	f.StringVar(&o.Namespace, "namespace", "", "namespace that all is in, and that pods are measured in")
	f.BoolVar(&o.NewNamespace, "new-namespace", false, "make the namespace, too")
	f.StringVar(&o.Name, "name", "netdelta", "name of the objects, so that a namespace can have several schedules")
	f.StringVar(&o.Schedule, "schedule", "0 2 * * *", "when, in the five fields of cron")
	f.StringVar(&o.Zone, "time-zone", "", "time zone of the schedule, such as Europe/Berlin (default: the cluster controllers' zone)")
	f.StringVar(&o.Study, "study", studies.Cluster, "a built-in study, or a study file, which then is part of the manifest")
	f.StringVar(&o.Margin, "margin", "", "change that counts as none, such as 5% (default: the study's)")
	f.IntVar(&o.Keep, "keep", 30, "how many runs to keep")
	f.StringVar(&o.Storage, "storage", "2Gi", "size of the volume that keeps them")
	f.StringVar(&o.StorageClass, "storage-class", "", "storage class of the volume (default: the cluster's)")
	f.DurationVar(&o.Budget, "time-budget", 0, "how long a run may take (default: the study's)")
	f.BoolVar(&o.Trust, trustFlag, false, trustUsage)
	f.BoolVar(&o.NodeAgent, "node-agent", false, "have runs prove at the nodes' devices which way packets went; it takes a namespace that admits such pods")
	return cmd
}

// printSchedule prints the manifest.
func (env *environment) printSchedule(ctx context.Context, o schedule.Options) error {
	if o.Margin != "" {
		if _, err := parseMargin(o.Margin); err != nil {
			return usageError{fmt.Errorf("--margin: %w", err)}
		}
	}
	s, err := env.readStudy(o.Study)
	if err != nil {
		return badInput(err)
	}
	if !slices.ContainsFunc(studies.All(), func(f studies.File) bool { return f.Name == o.Study }) {
		text, err := result.ReadFile(o.Study, result.StudyMost)
		if err != nil {
			return fmt.Errorf("read the study: %w", err)
		}
		if err := env.trusts(ctx, o.Study, s.Demands(), o.Trust); err != nil {
			return err
		}
		// The job can't ask, and the study that is part of the manifest is this one.
		o.Text, o.Trust = text, len(s.Demands()) > 0
	}
	if err := o.Check(); err != nil {
		return usageError{err}
	}
	return schedule.Write(env.out, o)
}

// nightlyOptions are the flags of nightly.
type nightlyOptions struct {
	runs, margin string
	keep         int
}

func newNightlyCommand(env *environment) *cobra.Command {
	var o nightlyOptions
	cmd := &cobra.Command{
		Use:   "nightly [STUDY|FILE] [-- FLAGS OF RUN]",
		Short: "Run a study on a cluster, and compare it with the last run in a folder: what a schedule carries out",
		Long: `Run a study on a cluster, and compare it with the last run of the same study in a folder. What has changed is printed as
text, and then as annotations (::error ...::). What follows -- is handed to netdelta run. Of the runs in the folder so many
as --keep says stay.

EXIT STATUS
  0    done; no regression was found, or there was no earlier run
  1    failed, or some trials of the run failed
  2    bad usage or study file
  3    nothing could be measured, or compared
  4    a regression beyond the margin
  130  interrupted`,
		Example: `  netdelta kube nightly latency --runs runs/nightly -- --kubeconfig test.yaml --image REF`,
		RunE: func(cmd *cobra.Command, a []string) error {
			own, forRun := a, []string(nil)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				own, forRun = a[:dash], a[dash:]
			}
			if len(own) > 1 {
				return usageError{fmt.Errorf("name one study, not %d; flags of run stand after --", len(own))}
			}
			name := studies.Cluster
			if len(own) == 1 {
				name = own[0]
			}
			return env.nightly(cmd.Context(), name, o, forRun)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.runs, "runs", "runs", "folder of the run folders")
	f.StringVar(&o.margin, "margin", "", "change that counts as none, such as 5% (default: the wider of the runs' own)")
	f.IntVar(&o.keep, "keep", 30, "how many runs to keep, 2 at least")
	return cmd
}

// check turns the flags into how runs are compared.
func (o nightlyOptions) check() (compareOptions, error) {
	if o.keep < 2 {
		return compareOptions{}, usageError{errors.New("--keep: need 2 runs at least, since each is compared with the one before")}
	}
	info, err := os.Stat(o.runs)
	if err == nil && !info.IsDir() {
		return compareOptions{}, usageError{fmt.Errorf("--runs: %s is no folder", o.runs)}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return compareOptions{}, fmt.Errorf("look into the folder of runs: %w", err)
	}
	return compareOptions{margin: o.margin, format: compareFormats()[0]}, nil
}

// nightName names a run's folder.
func nightName(study string, at time.Time) string {
	return study + "-" + at.UTC().Format("20060102-150405")
}

// nightly runs a study on a cluster, compares it with the last run, and removes the oldest.
func (env *environment) nightly(ctx context.Context, name string, o nightlyOptions, forRun []string) error {
	comparing, err := o.check()
	if err != nil {
		return err
	}
	how, err := comparing.check(o.margin != "")
	if err != nil {
		return usageError{err}
	}
	s, err := env.readStudy(name)
	if err != nil {
		return badInput(err)
	}
	earlier, err := session.RunsOf(o.runs, s.Name)
	if err != nil {
		return err
	}
	folder, err := session.FreshFolder(o.runs, nightName(s.Name, time.Now()))
	if err != nil {
		return err
	}
	ran := env.runInto(ctx, name, folder, forRun)
	if err := endsNight(ran); err != nil {
		_ = os.Remove(folder) // where the run did not begin it is empty, and no run's
		return err
	}
	last := session.LatestWhole(earlier)
	if last == "" {
		fmt.Fprintf(env.out, "\nThere is no earlier run of %s in %s: the next one is compared with this.\n", ui.Clean(s.Name), ui.Clean(o.runs))
		return ran
	}
	fmt.Fprintln(env.out)
	c, err := env.compared(last, folder, how)
	if err != nil {
		return errors.Join(ran, err)
	}
	if err := env.writeComparison(env.out, c, comparing.format); err != nil {
		return err
	}
	if err := annotations.WriteComparison(env.out, c); err != nil {
		return err
	}
	if err := session.Prune(o.runs, s.Name, o.keep); err != nil {
		printError(env.err, err.Error()) // the next night tries again, and what was found must not be hidden by it
	}
	return cmp.Or(verdict(c), ran)
}

// runInto carries out netdelta run on a cluster, as a user would call it.
func (env *environment) runInto(ctx context.Context, study, folder string, flags []string) error {
	root := newRoot(env)
	root.SetIn(env.in)
	root.SetOut(env.out)
	root.SetErr(env.err)
	root.SetArgs(slices.Concat([]string{"run", study, "--testbed", kubeTestbed, "--out", folder}, flags))
	return root.ExecuteContext(ctx)
}

// endsNight is the error of a run after which there is nothing to compare: any but that some of its trials failed.
func endsNight(ran error) error {
	if exit, is := errors.AsType[*exitError](ran); is && exit.status == exitFailed {
		return nil
	}
	return ran
}

// imageOptions are the flags of image.
type imageOptions struct {
	out, push, name string
	binaries        []string
	insecure        bool
}

func newImageCommand(env *environment) *cobra.Command {
	var o imageOptions
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Make a container image of this program, for clusters",
		Long: `Make a container image of this program: one static binary at ` + oci.Entrypoint + `, run by a user without rights. The archive is an
OCI layout and a docker archive in one, which ctr images import, docker load, podman load and kind load image-archive take.
The same program gives the same image, so that its digest says what runs.

--push writes it to a registry in place of a file, with the credentials that docker login has left.

The image is for the kind of processor that this program runs on. --binary makes it of another file, and, given once for each kind
of processor, of several: then it is an index of images, under one name and digest, and each node takes the one that it can run.

EXIT STATUS
  0    done
  1    the program can't be made an image of, or it could not be written
  2    bad usage`,
		Example: `  netdelta image --out netdelta.tar
  netdelta image --push registry.example.org/tools/netdelta:1
  netdelta image --binary netdelta-amd64 --binary netdelta-arm64 --push registry.example.org/tools/netdelta:1
  netdelta image --out - | ctr -n k8s.io images import -`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.push != "" && (cmd.Flags().Changed("out") || cmd.Flags().Changed("name")) {
				return usageError{errors.New("--push writes to the registry that it names: leave --out and --name away")}
			}
			if o.push == "" && o.insecure {
				return usageError{errors.New("--insecure-registry is about the registry of --push: name it, or leave the flag away")}
			}
			return env.image(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.out, "out", "netdelta.tar", "archive to write, - for standard output")
	f.StringVar(&o.name, "name", "netdelta:latest", "name of the image in the archive")
	f.StringArrayVar(&o.binaries, "binary", nil, "make the image of this `FILE`, a static netdelta for Linux; several, each for another kind of processor (default: this program)")
	f.StringVar(&o.push, "push", "", "write the image to a registry, as `REGISTRY/REPOSITORY:TAG`")
	f.BoolVar(&o.insecure, "insecure-registry", false, "with --push: take a registry without TLS")
	return cmd
}

// image makes the image and hands it to where it is asked for.
func (env *environment) image(ctx context.Context, o imageOptions) error {
	text := cmp.Or(o.push, o.name)
	ref, err := oci.ParseReference(text, o.insecure)
	if err != nil {
		return usageError{err}
	}
	made, err := artifactOf(o.binaries)
	if err != nil {
		return err
	}
	if o.push != "" {
		pushed, err := oci.Push(ctx, made, ref)
		if err == nil {
			fmt.Fprintln(env.out, pushed)
		}
		return err
	}
	write := func(w io.Writer) error { return oci.WriteArchive(w, made, ref) }
	if o.out == "-" {
		if env.onTerminal() {
			return usageError{errors.New("an image is not for a terminal: name a file with --out, or pipe it to a program")}
		}
		return write(env.out)
	}
	if err := replaceFile(o.out, write); err != nil {
		return err
	}
	digest, err := made.Digest()
	if err != nil {
		return fmt.Errorf("name the image by its digest: %w", err)
	}
	fmt.Fprintf(env.err, "image: %s, %s, %s\n", ui.Clean(o.out), ref, digest)
	return nil
}

// artifactOf makes an image, or an index of several, of binaries, of this program where none are named.
func artifactOf(paths []string) (oci.Artifact, error) {
	if len(paths) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program's own file: %w", err)
		}
		paths = []string{self}
	}
	var programs []oci.Program
	for _, path := range paths {
		p, err := oci.Inspect(path)
		if err != nil {
			return nil, err
		}
		programs = append(programs, p)
	}
	if len(programs) == 1 {
		return oci.Image(programs[0])
	}
	return oci.Index(programs...)
}
