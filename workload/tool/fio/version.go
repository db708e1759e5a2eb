package fio

import (
	"fmt"
	"strings"

	"netdelta/workload/tool"
)

// oldest is the oldest version that is taken, Debian 11's: older ones report latencies in other forms.
const oldest = "3.25"

// CheckVersion returns an error if a version, as fio --version says it ("fio-3.33"), is too old, or is none.
func CheckVersion(said string) error {
	said = strings.TrimSpace(said)
	version, found := strings.CutPrefix(said, "fio-")
	switch {
	case !found:
		return fmt.Errorf("fio says that its version is %.40q, which is none; is it another program?", said)
	case tool.Older(version, oldest):
		return fmt.Errorf("%s is too old: install fio %s or newer", said, oldest)
	}
	return nil
}
