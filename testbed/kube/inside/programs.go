package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"netdelta/internal/daemon"
)

// Lacks are programs that are not there.
type Lacks struct {
	Names []string `json:"names,omitempty"`
	Error string   `json:"error,omitempty"` // why it could not be found out
}

// lacking looks for programs, whose names are a list in JSON, and says which are not there.
func lacking(names string, out io.Writer) error {
	var wanted []string
	if err := json.Unmarshal([]byte(names), &wanted); err != nil {
		return fmt.Errorf("read which programs to look for: %w", err)
	}
	var found Lacks
	for _, name := range wanted {
		switch _, err := daemon.Look(name); {
		case errors.Is(err, daemon.ErrMissing):
			found.Names = append(found.Names, name)
		case err != nil:
			return say(out, Lacks{Error: err.Error()})
		}
	}
	return say(out, found)
}
