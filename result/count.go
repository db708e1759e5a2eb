package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// CountFile says how many trials the journal holds. A journal that is cut between two lines looks whole by itself; the record of a run
// knows the number only once the run has ended, and a killed run has none.
const CountFile = "trials.count"

// openCount opens the file for writing, and makes it if there is none.
func openCount(files *Files) (*os.File, error) {
	file, err := files.open(CountFile, os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = files.root.OpenFile(CountFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	}
	if err != nil {
		return nil, explain(fmt.Errorf("count the trials: %w", at(files.name(CountFile), err)))
	}
	return file, nil
}

// writeCount is called when a trial is on disk, so that the number is never above what the journal has held. It need not be on disk
// itself, and that it can't be written loses no trial.
func (j *Journal) writeCount() {
	if j.counter != nil {
		_, _ = j.counter.WriteAt(fmt.Appendf(nil, "%-12d\n", j.held), 0)
	}
}

// counted is how many trials the journal has held, 0 where that is not known. It must be asked before the journal is read, which
// another program may be writing.
func (f *Files) counted() int {
	text, err := f.Read(CountFile, countMost)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// countMost is the greatest size of the file that is read.
const countMost = 64
