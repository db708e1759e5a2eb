// Package property checks properties of code with made-up input, and leaves no files behind. Only tests import it.
package property

import (
	"flag"
	"sync"

	"pgregory.net/rapid"
)

// writeNoFiles tells rapid not to write the input that made a check fail below the package's testdata, where the next run would read
// it and git would see it. The failed test prints the seed that makes the same input again, and the input itself.
var writeNoFiles = sync.OnceFunc(func() {
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		panic(err)
	}
})

// Check fails the test if there is input for which the property does not hold, as rapid.Check does.
func Check(t rapid.TB, holds func(*rapid.T)) {
	t.Helper()
	writeNoFiles()
	rapid.Check(t, holds)
}
