package ceph

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// oldest is the first major version that has the second version of the messenger's protocol.
const oldest = 14

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
	first, _, _ := strings.Cut(number, ".")
	major, err := strconv.Atoi(first)
	if !found || err != nil {
		return "", fmt.Errorf("ceph-osd says that its version is %.60q, which is none; is it another program?", said)
	}
	if major < oldest {
		return "", fmt.Errorf("version %s of Ceph is too old: install %d or newer", number, oldest)
	}
	return number, nil
}
