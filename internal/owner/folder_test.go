package owner_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/owner"
	"netdelta/internal/require"
)

// A folder is refused wherever another user can put something into it, or put another folder in its place.
func TestCheckFolder(t *testing.T) {
	require.Need(t, "root, to give files to others", os.Geteuid() == 0)
	const other = 54321
	for name, c := range map[string]struct {
		make func(home string) error
		says string // "" where it is taken
	}{
		"missing": {func(string) error { return nil }, ""},
		"own":     {func(home string) error { return os.MkdirAll(home+"/cache/netdelta", 0o755) }, ""},
		"of another": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache/netdelta", 0o755), os.Chown(home+"/cache/netdelta", other, other))
		}, "cache/netdelta belongs to uid 54321"},
		"in another's": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache/netdelta", 0o755), os.Chown(home+"/cache", other, other))
		}, "cache belongs to uid 54321"},
		"missing in another's": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache", 0o755), os.Chown(home+"/cache", other, other))
		}, "cache belongs to uid 54321"},
		"for a group": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache/netdelta", 0o755), os.Chmod(home+"/cache/netdelta", 0o775))
		}, "chmod go-w"},
		"for all": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache/netdelta", 0o755), os.Chmod(home+"/cache/netdelta", 0o777))
		}, "chmod go-w"},
		"below one for all": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache/netdelta", 0o755), os.Chmod(home+"/cache", 0o777))
		}, "everybody may write to"},
		"below one like /tmp": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache/netdelta", 0o755), os.Chmod(home+"/cache", 0o777|os.ModeSticky))
		}, ""},
		"a link": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache", 0o755), os.Symlink("/etc", home+"/cache/netdelta"))
		}, "is a link"},
		"a file": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/cache", 0o755), os.WriteFile(home+"/cache/netdelta", nil, 0o644))
		}, "is no folder"},
		"by an own link": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/disk/netdelta", 0o755), os.Symlink("disk", home+"/cache"))
		}, ""},
		"by another's link": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/disk/netdelta", 0o755), os.Symlink("disk", home+"/cache"), os.Lchown(home+"/cache", other, other))
		}, "cache belongs to uid 54321"},
		"by a link to another's": {func(home string) error {
			return errors.Join(os.MkdirAll(home+"/disk/netdelta", 0o755), os.Chown(home+"/disk", other, other), os.Symlink(home+"/disk", home+"/cache"))
		}, "disk belongs to uid 54321"},
		"by links in a circle": {func(home string) error { return os.Symlink("cache", home+"/cache") }, "too many levels"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			require.NoError(t, c.make(home))
			err := owner.CheckFolder(filepath.Join(home, "cache", "netdelta"), "XDG_CACHE_HOME")
			if (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "XDG_CACHE_HOME")) {
				t.Errorf("got error %v, want one that says %q", err, c.says)
			}
		})
	}
}
