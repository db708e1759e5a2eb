package fio

import (
	"fmt"
	"strings"
)

// oldest is the oldest version that is taken, that of Debian 11: those before report latencies in other forms.
const oldestMajor, oldestMinor = 3, 25

// CheckVersion returns an error if a version, as fio --version says it ("fio-3.33"), is too old, or is none.
func CheckVersion(said string) error {
	said = strings.TrimSpace(said)
	var major, minor int
	if _, err := fmt.Sscanf(said, "fio-%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("fio says that its version is %.40q, which is none; is it another program?", said)
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return fmt.Errorf("%s is too old: install fio %d.%d or newer", said, oldestMajor, oldestMinor)
	}
	return nil
}
