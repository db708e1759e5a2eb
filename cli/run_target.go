package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"netdelta/experiment/study"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/unit"
	"netdelta/workload"
)

// targetOptions are the flags of run that are about an endpoint of the user's own.
type targetOptions struct {
	url, passwordFile string
	flags             *pflag.FlagSet
	target            workload.Target // the URL, read
}

// passwordVariable names the variable of the environment that may have a target's password.
const passwordVariable = "NETDELTA_TARGET_PASSWORD"

func (t *targetOptions) add(f *pflag.FlagSet) {
	t.flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	t.flags.StringVar(&t.url, "target", "", "`URL` of an endpoint of your own, in the cluster or reached from your servers, measured in place of a server of netdelta's: http://HOST[:PORT][/PATH], mysql://USER@HOST[:PORT]/DATABASE, postgres://USER@HOST[:PORT]/DATABASE")
	t.flags.StringVar(&t.passwordFile, passwordFlag, "", "file with the password of the target; - is standard input (default: $"+passwordVariable+")")
	f.AddFlagSet(t.flags)
}

// collectTarget reads the URL, and has a workload that speaks to it take the place of the study's where no flag names any.
func (env *environment) collectTarget(o *runOptions) error {
	if o.target.url == "" {
		return nil
	}
	t, err := workload.ParseTarget(o.target.url)
	if err != nil {
		return usageError{fmt.Errorf("--target: %w", err)}
	}
	if t.Password.Given() && o.target.passwordFile != "" {
		return usageError{errors.New("--target has a password, and --target-password-file gives one: leave one of them out")}
	}
	o.target.target = t
	o.overrides.Target = []string{t.String()}
	if len(o.overrides.Workloads) > 0 {
		return nil
	}
	for _, w := range env.workloads {
		if w.Target != nil && slices.Contains(w.Target.Schemes, t.Scheme) {
			o.overrides.Workloads = append(o.overrides.Workloads, w.Name)
		}
	}
	if len(o.overrides.Workloads) == 0 {
		return usageError{fmt.Errorf("--target: %w", workload.UnspokenError(t, env.workloads))}
	}
	return nil
}

// password is the target's password: from its URL, a file, or the environment.
func (t *targetOptions) password(ctx context.Context, in io.Reader, getenv func(string) string) (workload.Secret, error) {
	if t.target.Password.Given() {
		return t.target.Password, nil
	}
	if t.passwordFile == "" {
		return workload.NewSecret(getenv(passwordVariable)), nil
	}
	var text []byte
	var err error
	if t.passwordFile == "-" {
		text, err = readAhead(ctx, io.LimitReader(in, mostPassword+1))
	} else {
		text, err = result.ReadFile(t.passwordFile, unit.MiB)
	}
	if err != nil {
		return workload.Secret{}, usageError{fmt.Errorf("--target-password-file: %w", err)}
	}
	line := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if line == "" || len(line) > mostPassword || strings.ContainsAny(line, "\r\n\x00") {
		return workload.Secret{}, usageError{fmt.Errorf("--target-password-file: %s has to hold the password alone, on one line of %d characters at most", t.passwordFile, mostPassword)}
	}
	return workload.NewSecret(line), nil
}

// readAhead reads all, or until the context ends.
func readAhead(ctx context.Context, in io.Reader) ([]byte, error) {
	var text []byte
	done := make(chan error, 1)
	go func() {
		read, err := io.ReadAll(in)
		text = read
		done <- err
	}()
	select {
	case err := <-done:
		return text, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// mostPassword is how long a password is at most.
const mostPassword = 1024

// toTarget has a study compare where clients of a target stand, in the networks that a client alone can be in: other networks say how
// netdelta's own servers are reached. Networks that change the cluster stay, and so does what a flag asks for. It says what was changed.
func toTarget(s *study.Study, o study.Overrides, stand ...string) (note string) {
	if len(o.Target) == 0 || len(o.Networks) > 0 {
		return ""
	}
	before := slices.Clone(s.Networks)
	if clientNetworks(s, o, stand...); slices.Equal(before, s.Networks) {
		return ""
	}
	return fmt.Sprintf("the networks are where the clients of the target stand: %s", strings.Join(s.Networks, ", "))
}

// clientNetworks makes the networks the given ones, of which the first is the baseline, and those that change the cluster.
func clientNetworks(s *study.Study, o study.Overrides, stand ...string) {
	changes := func(name string) bool {
		return slices.ContainsFunc(s.Changes, func(c testbed.Change) bool { return c.Network == name })
	}
	before := s.Networks
	s.Networks = stand
	for _, name := range before {
		if changes(name) {
			s.Networks = append(s.Networks, name)
		}
	}
	if o.Baseline == "" {
		s.Baseline = stand[0]
	}
}

// storageFlag names the classes of a cluster's volumes that are measured.
const storageFlag = "storage-class"

// volumeWorkload is the workload that keeps its blocks in a volume.
const volumeWorkload = "block"

// collectStorage has the workload that uses volumes take the place of the study's where no flag names any.
func (o *runOptions) collectStorage() {
	if len(o.overrides.StorageClass) > 0 && len(o.overrides.Workloads) == 0 {
		o.overrides.Workloads = []string{volumeWorkload}
	}
}

// toStorage has a study compare where clients with a volume stand, in the nodes' network and in the pods': other networks of a cluster
// say how netdelta's own servers are reached. A volume is on the node of its pod. What flags ask for stays. It says what was changed.
func toStorage(s *study.Study, o study.Overrides) (note string) {
	if len(o.StorageClass) == 0 {
		return ""
	}
	var changed []string
	if before := slices.Clone(s.Networks); len(o.Networks) == 0 {
		if clientNetworks(s, o, kube.Host, kube.Pod); !slices.Equal(before, s.Networks) {
			changed = append(changed, "the networks are where the pod with the volume is: "+strings.Join(s.Networks, ", "))
		}
	}
	if only := []result.Placement{result.SameNode}; len(o.Placement) == 0 && !slices.Equal(s.Placement, only) {
		s.Placement = only
		changed = append(changed, fmt.Sprintf("the placement is %s: a volume is mounted on the node of its pod", result.SameNode))
	}
	return strings.Join(changed, "; ")
}
