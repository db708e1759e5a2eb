package words

import (
	"maps"
	"slices"
	"strings"

	"netdelta/result"
	"netdelta/testbed"
)

// secretOption is the option whose value a record may lack, since it is secret.
const secretOption = "target-password-file"

// Option is an option as one types it.
func Option(name, value string) string {
	if value == "true" {
		return "--" + name
	}
	return "--" + name + " " + testbed.Quoted(value)
}

// Resume is the command that goes on with a run. The run folder has the options; what is secret is given anew.
func Resume(run result.Run) string {
	verb := "run"
	if run.Strategy != nil {
		verb = run.Strategy.Name
	}
	return "netdelta " + verb + " --resume " + Folder + secret(run)
}

// secret asks for what a run was given and its record can't have.
func secret(run result.Run) string {
	if value, given := run.Options[secretOption]; given && value == "" {
		return " --" + secretOption + " FILE"
	}
	return ""
}

// on are the options that have another run measure where and as this one did. A study of the user's own names its testbed.
func on(run result.Run, builtin bool) string {
	var all []string
	if _, whatIf := run.Options["what-if"]; builtin && !whatIf && run.Testbed != "lab" && run.Testbed != "" && run.Testbed != run.Study {
		all = append(all, Option("testbed", run.Testbed))
	}
	for _, name := range slices.Sorted(maps.Keys(run.Options)) {
		value := run.Options[name]
		if !slices.Contains([]string{"builds", "flame", "hops", "explain-outliers", secretOption}, name) {
			all = append(all, Option(name, value))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, " ") + secret(run)
}
