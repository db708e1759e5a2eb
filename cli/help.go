package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/internal/gather"
	"netdelta/internal/suggest"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

const (
	// helpWidth is how wide the lines of help are at most: longer ones are hard to read.
	helpWidth = 100
	// flagColumn is where the texts of flags begin at most; a longer flag has its text below it.
	flagColumn = 28
	// fewFlags are not put into groups.
	fewFlags = 14
	// helpLines are how many lines help has at most: two screens of 24. What has more shows what is often used, and names the rest.
	helpLines = 48
	// wholeFlag is the flag that shows all of such help.
	wholeFlag = "help-all"
)

// helpGroup is a title with the flags, or verbs, below it.
type helpGroup struct {
	title string
	names []string
}

// verbGroups sort the verbs of the root by what they are for.
func verbGroups() []helpGroup {
	return []helpGroup{
		{"Measure", []string{"run", "advise", "hops", "flame", "fleet", "pairs", "policies"}},
		{"Read what was measured", []string{"show", "report", "compare", "serve", "import"}},
		{"Prepare, and clean up", []string{"doctor", "list", "lab", "vm", "image", "kube", "cleanup", "version", "completion", "help"}},
	}
}

// flagGroups sort the flags of verbs that have many.
func flagGroups() []helpGroup {
	return []helpGroup{
		{"What is measured", []string{
			"networks", "baseline", "workloads", "workload", "clients", "servers", "factor", "mtu", "family", "placement", "target", passwordFlag, storageFlag, "rules", "fresh",
			"request", "calls",
		}},
		{"How, and for how long", []string{
			"time-budget", buildsFlag, "blocks", "rounds", "burst", "duration", "repeat", "every", "within", "seed", "exact", "wait",
		}},
		{"Where", []string{"testbed", nodesFlag, "nic", "sudo", dockerFlag, whatIfFlag}},
		{"On a cluster", clusterFlagNames()},
		{"What is looked at besides", []string{"hops", "explain-outliers", "flame", "metrics-listen"}},
		{"What comes of it", []string{"out", "resume", "dry-run", "fail-if", "format", "json", "verbose", "quiet", trustFlag, "help"}},
	}
}

// oftenUsed are the flags that help shows where it can't show all.
func oftenUsed() []string {
	return []string{
		"networks", "workloads", "workload", "clients", "factor", "placement", "time-budget", "testbed", "base-image", "network", "vs", "study", "schedule",
		"out", "resume", "dry-run", "fail-if", "json", "verbose", wholeFlag,
	}
}

// explain has verbs print their help by print, in place of the library's templates, and gives each a flag that shows all of it.
func (env *environment) explain(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		width := min(ui.Detect(env.terminal, env.getenv).Width, helpWidth)
		_, _ = io.WriteString(cmd.OutOrStdout(), helpText(cmd, width)) // what can't be written is said at the end
	})
	for _, verb := range allVerbs(root) {
		if verb.RunE != nil {
			addWhole(verb, len(visible(verb.Flags())) > fewFlags)
		}
	}
}

// allVerbs are the verbs below a verb.
func allVerbs(of *cobra.Command) (all []*cobra.Command) {
	for _, c := range of.Commands() {
		all = append(append(all, c), allVerbs(c)...)
	}
	return all
}

// addWhole gives a verb the flag that shows all of its help, whatever else the call lacks. Help names it where it does not show all.
func addWhole(verb *cobra.Command, named bool) {
	whole := verb.Flags().Bool(wholeFlag, false, "help with all flags")
	verb.Flags().Lookup(wholeFlag).Hidden = !named
	check, do := verb.Args, verb.RunE
	verb.Args = func(cmd *cobra.Command, a []string) error {
		if *whole || check == nil {
			return nil
		}
		return check(cmd, a)
	}
	verb.RunE = func(cmd *cobra.Command, a []string) error {
		if *whole {
			return cmd.Help()
		}
		return do(cmd, a)
	}
}

// helpText is the help of a verb: all of it where that is asked for, or fits two screens.
func helpText(cmd *cobra.Command, width int) string {
	var whole, short strings.Builder
	_ = ui.Print(&whole, "help", func(t ui.Text) { printHelp(t, cmd, width) }) // memory takes all
	wanted := cmd.Flags().Lookup(wholeFlag)
	if wanted == nil || wanted.Value.String() == "true" || strings.Count(whole.String(), "\n") <= helpLines {
		return whole.String()
	}
	_ = ui.Print(&short, "help", func(t ui.Text) { printShort(t, cmd, width) })
	return short.String()
}

// printShort prints the first paragraph of what a verb does, the flags that are often used, and the names of the others.
func printShort(out ui.Text, cmd *cobra.Command, width int) {
	about, _, _ := strings.Cut(cmp.Or(cmd.Long, cmd.Short), "\n\n")
	for _, l := range filled(about, width) {
		out.Put("%s\n", l)
	}
	printUsage(out, cmd)
	known := visible(cmd.LocalFlags())
	often := gather.Where(oftenUsed(), func(name string) bool { return known[name] != nil })
	out.Put("\nOften used:\n")
	printEntries(out, often, known, width)
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool { return name == "help" || slices.Contains(often, name) })
	out.Put("\nFurther flags, which --%s explains, with the exit status:\n", wholeFlag)
	for _, g := range grouped(flagGroups(), rest) {
		if len(g.names) > 0 {
			names := gather.Each(g.names, func(n string) string { return "--" + n })
			hang(out, "  "+g.title, indexColumn, ui.Wrap(strings.Join(names, " "), width-indexColumn))
		}
	}
}

// indexColumn is where the names of flags begin that are not explained.
const indexColumn = 29

// visible are the flags that are not hidden, by name.
func visible(flags *pflag.FlagSet) map[string]*pflag.Flag {
	all := map[string]*pflag.Flag{}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all[f.Name] = f
		}
	})
	return all
}

// printHelp prints what a verb does and takes.
func printHelp(out ui.Text, cmd *cobra.Command, width int) {
	for _, l := range filled(cmp.Or(cmd.Long, cmd.Short), width) {
		out.Put("%s\n", l)
	}
	printUsage(out, cmd)
	printVerbs(out, cmd, width)
	printFlags(out, cmd.LocalFlags(), width)
	if cmd.HasAvailableSubCommands() {
		out.Put("\n%s VERB --help explains a verb.\n", cmd.CommandPath())
	}
}

// printUsage prints how a verb is called.
func printUsage(out ui.Text, cmd *cobra.Command) {
	out.Put("\nUsage:\n")
	if cmd.Runnable() {
		out.Put("  %s\n", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		out.Put("  %s VERB\n", cmd.CommandPath())
	}
	if cmd.HasExample() {
		out.Put("\nExamples:\n%s\n", cmd.Example)
	}
}

// printVerbs prints the verbs below a verb.
func printVerbs(out ui.Text, cmd *cobra.Command, width int) {
	known := map[string]*cobra.Command{}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			known[c.Name()], names = c, append(names, c.Name())
		}
	}
	groups := []helpGroup{{"Verbs", names}}
	if !cmd.HasParent() {
		groups = grouped(verbGroups(), names)
	}
	for _, g := range groups {
		if len(g.names) == 0 {
			continue
		}
		out.Put("\n%s:\n", g.title)
		for _, n := range g.names {
			printEntry(out, n, known[n].Short, 12, width)
		}
	}
}

// printFlags prints the flags of a verb, in groups where they are many.
func printFlags(out ui.Text, flags *pflag.FlagSet, width int) {
	known := visible(flags)
	names := slices.Sorted(maps.Keys(known))
	if len(names) == 0 {
		return
	}
	if len(names) <= fewFlags {
		out.Put("\nFlags:\n")
		printEntries(out, names, known, width)
		return
	}
	for _, g := range grouped(flagGroups(), names) {
		if len(g.names) > 0 {
			out.Put("\n%s:\n", g.title)
			printEntries(out, g.names, known, width)
		}
	}
}

// printEntries prints flags, with what each is for.
func printEntries(out ui.Text, names []string, known map[string]*pflag.Flag, width int) {
	column := 0
	for _, n := range names {
		if w := len(flagName(known[n])); w < flagColumn-2 {
			column = max(column, w+2)
		}
	}
	for _, n := range names {
		printEntry(out, flagName(known[n]), flagText(known[n]), column, width)
	}
}

// grouped puts names into their groups, in the order of these; the last group takes what is in none.
func grouped(all []helpGroup, names []string) []helpGroup {
	left := slices.Clone(names)
	for i, g := range all {
		all[i].names = slices.DeleteFunc(slices.Clone(g.names), func(n string) bool { return !slices.Contains(left, n) })
		left = slices.DeleteFunc(left, func(n string) bool { return slices.Contains(all[i].names, n) })
	}
	last := &all[len(all)-1]
	last.names = append(last.names, left...)
	return all
}

// printEntry prints a name and, from a column on, a text.
func printEntry(out ui.Text, name, text string, column, width int) {
	hang(out, "  "+name, column+2, ui.Wrap(text, max(width-column-2, 20)))
}

// hang prints lines from a column on, and left of the first what it is about; that has a line of its own where it reaches the column.
func hang(out ui.Text, head string, column int, lines []string) {
	if len(head)+1 >= column {
		out.Put("%s\n", head)
		head = ""
	}
	for _, l := range lines {
		out.Put("%-*s%s\n", column, head, l)
		head = ""
	}
}

// flagName is a flag as one types it: "-v, --verbose", "--networks A,B,...".
func flagName(f *pflag.Flag) string {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	kind, _ := pflag.UnquoteUsage(f)
	kind = cmp.Or(map[string]string{
		"string": "TEXT", "stringArray": "TEXT", "strings": "A,B,...", "ints": "A,B,...", "duration": "TIME", "int": "N", "uint": "N", "float": "N",
	}[kind], kind)
	if f.Name == "out" || f.Name == "resume" {
		kind = "DIR"
	}
	return strings.TrimSpace(name + " " + kind)
}

// flagText is what a flag is for, with its default.
func flagText(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	if slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) || strings.Contains(text, "(default") {
		return text
	}
	value := strings.Trim(f.DefValue, "[]")
	if d, err := time.ParseDuration(value); err == nil {
		value = unit.FormatDuration(d)
	}
	return fmt.Sprintf("%s (default %s)", text, value)
}

// filled breaks a text into lines of a width. Lines that are indented, and headings, stay.
func filled(text string, width int) (lines []string) {
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			lines = append(lines, ui.Wrap(strings.Join(paragraph, " "), width)...)
		}
		paragraph = nil
	}
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if l != "" && l[0] != ' ' && l != strings.ToUpper(l) {
			paragraph = append(paragraph, l)
			continue
		}
		end()
		lines = append(lines, l)
	}
	end()
	return lines
}

// flagError says of a flag that is mistyped what would be one, in place of the words of the flags' parser.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is && unknown.GetSpecifiedShortnames() == "" {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near, found := suggest.Nearest(unknown.GetSpecifiedName(), known); found {
			return fmt.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, value, why := invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap().Error()
	switch {
	case strings.HasPrefix(why, "time: missing unit"):
		return fmt.Errorf("--%s %s: did you mean %[2]ss? A duration has a unit: 40s, 5m, 1h", flag, value)
	case strings.HasPrefix(why, "time: "):
		return fmt.Errorf("--%s %s: not a duration; write it as 40s, 5m or 1h", flag, value)
	case strings.HasPrefix(why, "strconv.ParseUint"):
		return fmt.Errorf("--%s %s: need a whole number, 0 or more", flag, value)
	case strings.HasPrefix(why, "strconv.ParseBool"):
		return fmt.Errorf("--%s takes no value", flag)
	case strings.HasPrefix(why, "strconv.ParseInt"), strings.HasPrefix(why, "strconv.Atoi"):
		return fmt.Errorf("--%s %s: need a whole number", flag, value)
	}
	return err
}

// args says what a verb takes in place of the library's complaint about its arguments.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, a []string) error {
		err := check(cmd, a)
		if err == nil {
			return nil
		}
		if len(a) == 1 {
			if near, found := suggest.Nearest(a[0], cmd.ValidArgs); found {
				return usageError{fmt.Errorf("%w; did you mean %s?", err, near)}
			}
		}
		given := fmt.Sprintf("%d arguments, %s", len(a), strings.Join(a, " "))
		switch len(a) {
		case 0:
			given = "no argument"
		case 1:
			given = "one argument, " + a[0]
		}
		return usageError{fmt.Errorf("you gave %s %s: call it as %s", cmd.Name(), given, cmd.UseLine())}
	}
}

// checkWorkload refuses a workload that there is not, by the flag that it was given by.
func (env *environment) checkWorkload(flag, name string) error {
	if err := oneOf(flag, name, env.workloadNames()); err != nil {
		return usageError{err}
	}
	return nil
}

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
