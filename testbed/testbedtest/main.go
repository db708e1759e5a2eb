package testbedtest

import (
	"os"
	"testing"

	"netdelta/internal/leak"
	"netdelta/testbed/lab/udptun"
)

// role is the environment variable that makes the test's binary something other than a test.
const role = "NETDELTA_TEST_ROLE"

// Main is what TestMain of a package that uses the suite calls and exits with. Started in a pod, the binary becomes a peer;
// roles are further ones that the package has for itself. Otherwise it runs the tests and fails if they leave anything.
func Main(m *testing.M, roles map[string]func() int) int {
	if udptun.Asked() {
		return udptun.Become()
	}
	switch name := os.Getenv(role); name {
	case "":
		return leak.Main(m)
	case "peer":
		return peerMain(os.Stdin, os.Stdout)
	default:
		if run, ok := roles[name]; ok {
			return run()
		}
		return 125
	}
}

// Role is the environment that makes the test's binary play a role.
func Role(name string) string { return role + "=" + name }
