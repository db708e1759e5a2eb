package ceph

import (
	"context"
	"fmt"
	"strings"

	"netdelta/workload/tool"
)

// oldest is the first major version that has the second version of the messenger's protocol.
const oldest = "14"

// readVersion finds out which version of Ceph is installed.
func (s *server) readVersion(ctx context.Context) error {
	said, err := run(ctx, s.home, "ceph-osd", "--version")
	if err != nil {
		return err
	}
	s.version, err = version(string(said))
	return err
}

// version is what is in "ceph version 16.2.15 (618f44...) pacific (stable)".
func version(said string) (string, error) {
	rest, found := strings.CutPrefix(said, "ceph version ")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch {
	case !found || number == "" || number[0] < '0' || number[0] > '9':
		return "", fmt.Errorf("ceph-osd says that its version is %.60q, which is none; is it another program?", said)
	case tool.Older(number, oldest):
		return "", fmt.Errorf("version %s of Ceph is too old: install %s or newer", number, oldest)
	}
	return number, nil
}
