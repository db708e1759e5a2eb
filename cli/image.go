package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"netdelta/report/ui"
	"netdelta/testbed/kube/oci"
)

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
		Short: "Make a container image of this program, for clusters; no container engine is needed",
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
