package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"netdelta/experiment/study"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// Flags that are in a run's record in addition to those about a cluster.
const (
	nodesFlag    = "nodes"
	buildsFlag   = "builds"
	passwordFlag = "target-password-file"
)

// resumes takes over what the run that is resumed was called with, and notes what this call says.
func (o *runOptions) resumes(flags *pflag.FlagSet, studies []string, getenv func(string) string) error {
	switch {
	case o.resume != "" && len(studies) == 1:
		return usageError{errors.New("--resume goes on with the study in the run folder: name no other")}
	case o.resume != "" && o.out != "":
		return usageError{errors.New("--resume goes on in the run's own folder: leave --out away")}
	}
	if err := o.call.recall(flags, o.resume, getenv); err != nil {
		return err
	}
	o.call.keep(flags)
	return nil
}

// callOptions are flags of a call that say where and how it measures and that no study holds: the record keeps them for a run that is
// resumed.
type callOptions struct {
	values map[string]string // by their names; a secret's is ""
	taken  []string          // names of those that the run that is resumed was called with
	// earlier is the record of the run that is resumed, nil where it can't be read, and unread is why.
	earlier *result.Record
	unread  error
}

// run is the run that is resumed, empty where it can't be read.
func (c *callOptions) run() result.Run {
	if c.earlier == nil {
		return result.Run{}
	}
	return c.earlier.Run
}

// clusterFlagNames are the flags that are about a cluster.
func clusterFlagNames() (names []string) {
	var c clusterOptions
	c.add(pflag.NewFlagSet("", pflag.ContinueOnError))
	c.flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// optionNames are the flags that a record keeps. harmless says of one that it can do nothing but measure.
func optionNames() []string {
	return append(clusterFlagNames(), nodesFlag, "nic", "sudo", dockerFlag, whatIfFlag, passwordFlag, buildsFlag, "flame", "hops", "explain-outliers")
}

func harmless(option string) bool {
	return slices.Contains([]string{buildsFlag, "flame", "hops", "explain-outliers", "qos", "cpu", "memory", "zones"}, option)
}

// replacing are the flags that take an option's place, too, where they are given.
func replacing(option string) []string {
	return map[string][]string{
		"image": {"base-image"}, "base-image": {"image"}, "zones": {nodesFlag}, nodesFlag: {"zones"}, "context": {"kubeconfig"},
		buildsFlag: {"time-budget"}, // another end of the run
	}[option]
}

// recall gives flags that are not given the values that they had when the run was begun that is resumed.
func (c *callOptions) recall(flags *pflag.FlagSet, dir string, getenv func(string) string) error {
	if dir == "" {
		return nil
	}
	c.earlier, c.unread = result.LoadRecord(dir) // who opens the folder says what is wrong with it
	old := c.run()
	for _, name := range slices.Sorted(maps.Keys(old.Options)) {
		f, value := flags.Lookup(name), old.Options[name]
		switch {
		case f == nil || !slices.Contains(optionNames(), name):
			return usageError{fmt.Errorf("%s: the run was called with --%s, which this netdelta can't go on with", filepath.Join(dir, result.ResultFile), name)}
		case f.Changed || slices.ContainsFunc(replacing(name), flags.Changed):
			continue
		case value == "" && getenv(passwordVariable) == "":
			return usageError{fmt.Errorf("the run in %s took a password for its target, which is not kept: give it again, by --%s FILE or $%s", dir, passwordFlag, passwordVariable)}
		case value == "":
			continue
		}
		if err := f.Value.Set(value); err != nil {
			return usageError{fmt.Errorf("%s: option --%s: %w", filepath.Join(dir, result.ResultFile), name, err)}
		}
		c.taken = append(c.taken, name)
	}
	return nil
}

// keep takes what the flags say now into the record. Files are kept as they are named from anywhere.
func (c *callOptions) keep(flags *pflag.FlagSet, except ...string) {
	c.values = map[string]string{}
	for _, name := range optionNames() {
		f := flags.Lookup(name)
		if f == nil || slices.Contains(except, name) || f.Value.String() == f.DefValue {
			continue
		}
		value := f.Value.String()
		if all, several := f.Value.(pflag.SliceValue); several {
			value = strings.Join(all.GetSlice(), ",")
		}
		switch {
		case name == passwordFlag && value == "-":
			value = ""
		case name == passwordFlag, name == "kubeconfig", name == dockerFlag && strings.Contains(value, "/"):
			value = fromAnywhere(value)
		}
		c.values[name] = value
	}
}

// fromAnywhere is a path that does not depend on the working directory.
func fromAnywhere(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// keepCluster takes the cluster into the record where the flags leave it to the environment: the run goes on in this one though the
// kubeconfig's current context be another by then.
func (c *callOptions) keepCluster(flags clusterFlags, getenv func(string) string) {
	cluster, err := flags.connect()
	if err != nil {
		return // opening it says what is wrong
	}
	if cluster.InKubeconfig() && flags.Context == "" {
		c.values["context"] = cluster.Name
	}
	if file := getenv("KUBECONFIG"); flags.Kubeconfig == "" && file != "" && !strings.ContainsRune(file, filepath.ListSeparator) {
		c.values["kubeconfig"] = fromAnywhere(file)
	}
}

// agreed says which options are taken from the run that is resumed, and returns an error unless they may be: its folder may be somebody
// else's, and this user gave none of them. What this call gives is trusted from then on.
func (env *environment) agreed(ctx context.Context, k kind, dir string, c *callOptions, cluster clusterOptions, given bool) error {
	if k.cluster {
		c.keepCluster(cluster.clusterFlags, env.getenv)
	}
	var shown []string
	var asked []study.Demand
	for _, name := range c.taken {
		shown = append(shown, words.Option(name, c.values[name]))
		if d := demandOf(name, c.values[name]); !harmless(name) && !env.remembers(d) {
			asked = append(asked, d...)
		}
	}
	if len(shown) > 0 {
		fmt.Fprintf(env.err, "goes on with %s, as the run began; the same flags replace them\n", ui.Clean(strings.Join(shown, " ")))
	}
	if len(asked) > 0 {
		if err := env.trusts(ctx, filepath.Join(dir, result.ResultFile), asked, given); err != nil {
			return err
		}
	}
	for name, value := range c.values {
		if !harmless(name) {
			_ = env.keepAnswer(demandOf(name, value)) // else it is asked for
		}
	}
	return nil
}

// demandOf is an option as something that is asked for beyond measuring.
func demandOf(name, value string) []study.Demand {
	return []study.Demand{{Says: "the run goes on with " + words.Option(name, value)}}
}

// keepSecret notes that the run takes a password for its target: of where it came from a file alone can be kept.
func (c *callOptions) keepSecret(given bool) {
	if _, kept := c.values[passwordFlag]; given && !kept {
		c.values[passwordFlag] = ""
	}
}
