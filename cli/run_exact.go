package cli

import (
	"errors"
	"fmt"
	"io/fs"
)

// firstSeed is the seed of the first guest of an exact run unless --seed says otherwise: two calls alike give the same figures.
const firstSeed = 1

// checkExact refuses flags that have no meaning where instructions are counted.
func (o *runOptions) checkExact(given func(string) bool) error {
	if !o.exact {
		return nil
	}
	for flag, why := range map[string]string{
		"time-budget": "it takes as long as it takes", "burst": "each network is measured by a number of transactions", "rounds": "each network is measured once in each build",
		"blocks": "networks are not swapped",
	} {
		if given(flag) {
			return usageError{fmt.Errorf("--%s has no meaning with --exact: %s", flag, why)}
		}
	}
	if o.testbed != "" && o.testbed != vmTestbed {
		return usageError{fmt.Errorf("--exact counts instructions, which only a guest can: leave --testbed %s away", o.testbed)}
	}
	if given("builds") && o.builds < 1 {
		return usageError{errors.New("--builds: an exact run has at least one")}
	}
	return nil
}

// counts says whether instructions are to be counted: the flag asks for it, or the run that is resumed did.
func (o *runOptions) counts() (bool, error) {
	if errors.Is(o.call.unread, fs.ErrNotExist) {
		return o.exact, nil // the code that resumes the run says what is missing
	}
	return o.exact || o.call.run().Exact != nil, o.call.unread
}
