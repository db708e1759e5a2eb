package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/internal/suggest"
)

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
		takes := "arguments"
		if len(a) > 0 {
			takes = "other arguments than " + strings.Join(a, " ")
		}
		return usageError{fmt.Errorf("%s takes %s: %s", cmd.Name(), takes, cmd.UseLine())}
	}
}

// checkWorkload refuses a workload that there is not, by the flag that it was given by.
func (env *environment) checkWorkload(flag, name string) error {
	if err := oneOf(flag, name, env.workloadNames()); err != nil {
		return usageError{err}
	}
	return nil
}
