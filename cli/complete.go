package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/workload"
)

// complete has the shell complete the values of flags that have known ones. A verb without one of the flags is left alone.
func (env *environment) complete(cmd *cobra.Command) {
	networks := func() []string { return networksOn(cmd.Flags()) }
	for flag, values := range map[string]func() []string{
		"testbed":   func() []string { return kindNames(func(kind) bool { return true }) },
		"networks":  networks,
		"network":   networks,
		"vs":        networks,
		"baseline":  networks,
		"placement": func() []string { return []string{string(result.SameNode), string(result.CrossNode)} },
		"family":    func() []string { return []string{string(result.IPv4), string(result.IPv6)} },
		"workloads": env.workloadNames,
		"workload":  env.workloadNames,
	} {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return continued(typed, values()), cobra.ShellCompDirectiveNoFileComp
		})
	}
	if cmd.Flags().Lookup("factor") != nil {
		_ = cmd.RegisterFlagCompletionFunc("factor", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return env.factorLevels(typed)
		})
	}
}

// continued are the values that may follow in a list separated by commas of which a part is typed.
func continued(typed string, values []string) []string {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var all []string
	for _, v := range values {
		if !strings.Contains(","+before, ","+v+",") {
			all = append(all, before+v)
		}
	}
	return all
}

// factorLevels completes KEY=LEVEL,LEVEL: the key first, then its levels where it has words.
func (env *environment) factorLevels(typed string) ([]string, cobra.ShellCompDirective) {
	key, levels, given := strings.Cut(typed, "=")
	var keys []string
	for _, d := range result.Parameters(workload.Parameters(env.workloads)...) {
		if given && d.Key == key {
			all := continued(levels, strings.FieldsFunc(d.Words, func(r rune) bool { return r == '|' }))
			for i := range all {
				all[i] = key + "=" + all[i]
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		}
		keys = append(keys, d.Key+"=")
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (env *environment) workloadNames() []string {
	return gather.Each(env.workloads, func(w workload.Workload) string { return w.Name })
}

// networksOn are the networks of the testbed that the flags name; where they name none, all networks.
func networksOn(flags *pflag.FlagSet) []string {
	testbed, _ := flags.GetString("testbed") // "" of a verb that has no such flag
	asked, _ := flags.GetBool(whatIfFlag)
	testbed, err := onWhatIf(flags, testbed, asked)
	if err != nil || testbed == "" {
		return networkNames()
	}
	k, err := findKind(testbed)
	switch {
	case err != nil:
		return nil
	case k.networks == nil:
		return builtNames()
	case k.networks.Added:
		return append(builtNames(), k.networks.Names...)
	}
	return k.networks.Names
}

// builtNames are the networks of the catalogue, and the names of products.
func builtNames() []string {
	names := network.Names(network.Catalogue())
	for _, p := range network.Products() {
		names = append(names, p.Name)
	}
	return names
}

// networkNames are the same names and the networks of clusters.
func networkNames() []string { return append(builtNames(), clusterNetworks().Names...) }
